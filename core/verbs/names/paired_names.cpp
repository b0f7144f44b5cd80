#include "core/verbs/names/paired_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/maps/map_of_pair.h"
#include "core/report/text_words.h"
#include "core/verbs/mapped_reference.h"

namespace shw::verbs {
namespace {

using Names = std::map<std::string, std::string>;

// Both sides of a map, with names as the map reads them and as saved.
struct PairSides {
  const ModelMap& map;
  const Checkpoint& one;    // in the world `from`
  const Checkpoint& other;  // in the world `to`
  BoundMap bound;           // from `one`
  BoundMap of_other;        // from `other`, in reverse; may be empty
  Names saved_names_of_one, saved_other;
};

std::string saved_name_of_read_name(const Names& names, const std::string& read) {
  const auto found = names.find(read);
  return found == names.end() ? read : found->second;
}

std::vector<std::string> shape_texts(const Checkpoint& checkpoint,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& fqn : names) {
    const auto tensor = checkpoint.find(fqn);
    out.push_back(tensor ? shw::to_text(checkpoint.shape(*tensor)) : std::string("not there"));
  }
  return out;
}

std::vector<std::string> texts_of(const std::vector<CounterPattern>& patterns) {
  std::vector<std::string> out;
  for (const CounterPattern& pattern : patterns) out.push_back(pattern.text);
  return out;
}

PairedTensors tensors_of(const PairSides& sides, const BoundRow& row) {
  PairedTensors out;
  for (const std::vector<std::string>& cell : row.from) {
    for (const std::string& fqn : cell)
      out.from.push_back(saved_name_of_read_name(sides.saved_names_of_one, fqn));
  }
  for (const std::string& fqn : row.to)
    out.to.push_back(
        saved_name_of_read_name(sides.saved_other, without_written_prefix(sides.map, fqn)));
  return out;
}

PairedRow make_paired_row(const PairSides& sides, const BoundRow& bound,
                          const PairedTensors& first) {
  const MapRow& of_map = sides.map.rows[bound.row];
  PairedRow row;
  row.from = texts_of(of_map.from);
  row.to = texts_of(of_map.to);
  const std::size_t shown = std::min(row.from.size(), first.from.size());
  row.from_shapes = shape_texts(
      sides.one, {first.from.begin(), first.from.begin() + static_cast<std::ptrdiff_t>(shown)});
  row.to_shapes = shape_texts(sides.other, first.to);
  row.does = row_words(sides.map, bound);
  return row;
}

// Adds the rows of the bound map, grouped by their row of the map, in its order.
void add_rows(const PairSides& sides, PairedNames& out, std::set<std::string>& made,
              std::map<std::size_t, std::size_t>& number_of) {
  for (const BoundRow& bound : sides.bound.rows) {
    PairedTensors tensors = tensors_of(sides, bound);
    const auto [at, is_new] = number_of.try_emplace(bound.row, out.rows.size());
    if (is_new) out.rows.push_back(make_paired_row(sides, bound, tensors));
    PairedRow& row = out.rows[at->second];
    row.from_count += tensors.from.size();
    row.to_count += tensors.to.size();
    for (const std::string& fqn : tensors.to) {
      row.missing += sides.other.find(fqn) ? 0U : 1U;
      made.insert(fqn);
    }
    row.tensors.push_back(std::move(tensors));
  }
}

void add_unpaired(const PairSides& sides, const std::set<std::string>& made, PairedNames& out) {
  for (const std::string& fqn : sides.bound.without_row)
    out.only_from.push_back(
        {saved_name_of_read_name(sides.saved_names_of_one, fqn), "no row of the map uses it"});
  for (const std::string& fqn : sides.bound.left_out)
    out.only_from.push_back(
        {saved_name_of_read_name(sides.saved_names_of_one, fqn), "left out: it is not a weight"});
  for (const auto& [copy, of] : sides.bound.omitted_copies)
    out.only_from.push_back(
        {saved_name_of_read_name(sides.saved_names_of_one, copy), "a copy of " + of});
  std::map<std::string, std::string> why;
  for (const std::string& fqn : sides.of_other.left_out)
    why[saved_name_of_read_name(sides.saved_other, fqn)] = "left out: it is not a weight";
  for (const auto& [copy, of] : sides.of_other.omitted_copies)
    why[saved_name_of_read_name(sides.saved_other, copy)] = "a copy of " + of;
  for (std::uint32_t t = 0; t < sides.other.tensor_count(); ++t) {
    std::string fqn(sides.other.fqn(TensorId{t}));
    if (made.contains(fqn)) continue;
    const auto known = why.find(fqn);
    out.only_to.push_back(
        {std::move(fqn), known == why.end() ? "no row of the map produces it" : known->second});
  }
}

Names saved_names_by_read_name(const BoundMap& bound) {
  Names out;
  for (const auto& [saved, read] : bound.stripped) out[read] = saved;
  return out;
}

Result<PairedNames> pair_through_map(const MapOfPair& pair, const Checkpoint& first,
                                     const Checkpoint& second, const ModelFacts& facts,
                                     std::map<std::size_t, std::size_t>& number_of) {
  const ModelMap& map = *pair.map;
  PairSides sides{
      map, pair.is_first_from ? first : second, pair.is_first_from ? second : first, {}, {}, {},
      {}};
  const std::vector<MapTensor> of_one = tensor_names_and_shapes(sides.one);
  if (auto bound = bind_map(map, MapDirection::kBack, tensor_names_and_shapes(sides.other), facts))
    sides.of_other = std::move(*bound);
  const ModelFacts followed =
      facts_from_other_side(map, of_one, sides.other, sides.of_other, facts);
  SHW_TRY(sides.bound, bind_map(map, MapDirection::kForward, of_one, followed));
  sides.saved_names_of_one = saved_names_by_read_name(sides.bound);
  sides.saved_other = saved_names(sides.other, sides.of_other);
  PairedNames out;
  out.map = map.name;
  out.from = map.from;
  out.to = map.to;
  out.is_first_from = pair.is_first_from;
  std::set<std::string> made;
  add_rows(sides, out, made, number_of);
  add_unpaired(sides, made, out);
  return out;
}

}  // namespace

void count_row_differences(const CheckpointDifference& difference, PairedNames& names) {
  std::set<std::string_view> named;
  for (const TensorDifference& one : difference.tensors) {
    if (one.kind != DifferenceKind::kRetiled) named.insert(one.fqn);
  }
  for (PairedRow& row : names.rows) {
    row.different = 0;
    for (const PairedTensors& tensors : row.tensors) {
      for (const auto* side : {&tensors.from, &tensors.to})
        row.different += static_cast<std::size_t>(
            std::count_if(side->begin(), side->end(),
                          [&](const std::string& fqn) { return named.contains(fqn); }));
    }
  }
}

Result<std::optional<PairedNames>> pair_names(const Checkpoint& first, const Checkpoint& second) {
  const ModelFacts facts = model_facts_of_both(first, second);
  SHW_TRY(const MapOfPair pair, map_of_pair(tensor_names_and_shapes(first),
                                            tensor_names_and_shapes(second), nullptr, facts));
  if (pair.map == nullptr) return std::optional<PairedNames>();
  std::map<std::size_t, std::size_t> number_of;
  SHW_TRY(PairedNames out, pair_through_map(pair, first, second, facts, number_of));
  return std::optional(std::move(out));
}

Result<PairedNames> pair_learned(const Checkpoint& first, const Checkpoint& second,
                                 const LearnedMap& learned) {
  const MapOfPair pair{&learned.map, learned.way == MapDirection::kForward};
  std::map<std::size_t, std::size_t> number_of;
  SHW_TRY(PairedNames out,
          pair_through_map(pair, first, second, model_facts_of_both(first, second), number_of));
  out.map.clear();
  out.tensors = learned.tensors;
  out.proved = learned.proved;
  for (const ExplainedRow& row : learned.rows) {
    const auto at = number_of.find(row.row);
    if (at == number_of.end()) continue;
    std::string& doubt = out.rows[at->second].doubt;
    if (row.is_by_name)
      doubt += "All elements are equal, as in other tensors too, so names decided. ";
    if (row.leaves_padding)
      doubt += "Its padding rows hold values that the other side does not have. ";
  }
  std::map<std::string_view, std::string_view> why;
  for (const UnexplainedTensor& one : learned.unexplained) why[one.fqn] = one.why;
  for (UnpairedTensor& one : pair.is_first_from ? out.only_to : out.only_from) {
    const auto known = why.find(one.fqn);
    if (known != why.end()) one.why = known->second;
  }
  return out;
}

}  // namespace shw::verbs
