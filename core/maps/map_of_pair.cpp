#include "core/maps/map_of_pair.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/maps/built_in_maps.h"
#include "core/maps/carried_states.h"
#include "core/maps/map_steps.h"
#include "core/maps/optimizer_parameters.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

const ModelMap* built_in_map_between(const std::string& a, const std::string& b) {
  for (const ModelMap& map : built_in_maps()) {
    if ((map.from == a && map.to == b) || (map.from == b && map.to == a)) return &map;
  }
  return nullptr;
}

// Uses the padded size of the other checkpoint, so that both have the same shape.
void set_padding_as_in_other(const Checkpoint& other, const BoundMap& bound, const ModelMap& map,
                             ModelFacts& facts) {
  for (const BoundRow& row : bound.rows) {
    for (const MapOp& op : map.rows[row.row].ops) {
      if (op.kind != MapOp::Kind::kPad || map.values.find(op.to) == map.values.end()) continue;
      const auto id = other.find(row.to.front());
      if (id && !other.shape(*id).empty()) facts.said.emplace(op.to, other.shape(*id).front());
    }
  }
}

struct NamesOfOther {
  std::set<std::string> tensors;
  std::set<std::string> parameters;  // that have optimizer states, without wrappers
  std::set<std::string> masters;     // kinds of states that are master weights
};

std::size_t count_results_in(const BoundMap& bound, const std::set<std::string>& names) {
  std::size_t count = 0;
  for (const BoundRow& row : bound.rows) {
    for (const std::string& name : row.to) count += names.contains(name) ? 1U : 0U;
  }
  return count;
}

// Number of names made by the map that the other checkpoint has; 0 if the map does not fit.
std::size_t count_common_names(const ModelMap& map, std::span<const MapTensor> one,
                               const NamesOfOther& other, const ModelFacts& facts) {
  auto bound = bind_map(map, MapDirection::kForward, one, facts);
  if (!bound) return 0;
  std::size_t count = count_results_in(*bound, other.tensors);
  if (other.parameters.empty()) return count;
  const std::string masters = states_for_chosen_forms(map.to_states, facts).masters;
  count += masters.empty() ? other.masters.empty() : other.masters.contains(masters);
  const auto parameters =
      bind_parameters(map, MapSide::kTo, MapDirection::kForward, tensors_after(*bound), facts);
  if (parameters && *parameters) count += count_results_in(**parameters, other.parameters);
  return count;
}

// Chooses the forms for which most names are in the other checkpoint.
void choose_forms_by_names(const ModelMap& map, std::span<const MapTensor> one,
                           const NamesOfOther& other, ModelFacts& facts) {
  for (const MapForms& forms : map.forms) {
    std::string best;
    std::size_t most = 0;
    for (const std::string& choice : forms.choices) {
      ModelFacts tried = facts;
      tried.forms_named_by_user.push_back(choice);
      const std::size_t count = count_common_names(map, one, other, tried);
      if (count > most) best = choice;
      most = std::max(most, count);
    }
    if (!best.empty()) facts.forms_named_by_user.push_back(best);
  }
}

// True if a quarter of the tensors have rows: optimizer states have none.
bool covers_quarter_of_tensors(const ModelMap& map, MapDirection way,
                               const std::vector<MapTensor>& tensors, const ModelFacts& facts) {
  constexpr std::size_t kShare = 4;
  return !tensors.empty() &&
         measure_map_fit(map, way, tensors, facts).tensors * kShare >= tensors.size();
}

// Refuses checkpoints that are not of the map's two programs: everything would be missing on both
// sides.
Result<MapOfPair> check_named_map_fits(const ModelMap& map, const std::vector<MapTensor>& first,
                                       const std::vector<MapTensor>& second,
                                       const ModelFacts& facts) {
  for (const bool is_first_from : {true, false}) {
    if (covers_quarter_of_tensors(map, MapDirection::kForward, is_first_from ? first : second,
                                  facts) &&
        covers_quarter_of_tensors(map, MapDirection::kBack, is_first_from ? second : first, facts))
      return MapOfPair{&map, is_first_from};
  }
  return fail(ErrorKind::kUsage,
              fmt::format("the map {} does not join these two: it is for one of {} and one of {}",
                          map.name, map.from, map.to),
              {}, "without --map one of the program's is chosen by the names");
}

}  // namespace

Result<MapOfPair> map_of_pair(const std::vector<MapTensor>& first,
                              const std::vector<MapTensor>& second, const ModelMap* map,
                              const ModelFacts& facts) {
  if (map != nullptr) return check_named_map_fits(*map, first, second, facts);
  const std::string from = naming_scheme_of(first, facts), to = naming_scheme_of(second, facts);
  if (from.empty() || to.empty() || from == to) return MapOfPair{};
  map = built_in_map_between(from, to);
  if (map == nullptr)
    return fail(ErrorKind::kUnsupported,
                fmt::format("no one map is known between {} and {}", from, to), {},
                "convert one of them with --to hf, and compare the result");
  return MapOfPair{map, from == map->from};
}

// Facts from the user, plus the forms and the padding of `other`.
ModelFacts facts_from_other_side(const ModelMap& map, const std::vector<MapTensor>& shapes,
                                 const Checkpoint& other, const BoundMap& of_other,
                                 const ModelFacts& facts) {
  ModelFacts followed = facts;
  NamesOfOther names;
  for (std::uint32_t t = 0; t < other.tensor_count(); ++t) {
    const std::string_view fqn = other.fqn(TensorId{t});
    names.tensors.emplace(fqn);
    const auto path = parse_state_fqn(fqn);
    if (!path) continue;
    names.parameters.insert(unwrapped_name(path->key));
    if (role_of_kind(path->kind) == StateRole::kMaster) names.masters.emplace(path->kind);
  }
  for (const auto& [saved, read] : of_other.stripped)
    names.tensors.insert(map.written_prefix + read);
  choose_forms_by_names(map, shapes, names, followed);
  ModelFacts padded = followed;
  set_padding_as_in_other(other, of_other, map, padded);
  return bind_map(map, MapDirection::kForward, shapes, padded) ? padded : followed;
}

std::map<std::string, std::string> saved_names(const Checkpoint& checkpoint,
                                               const BoundMap& bound) {
  std::map<std::string, std::string> names;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    names.emplace(checkpoint.fqn(TensorId{t}), checkpoint.fqn(TensorId{t}));
  for (const auto& [saved, read] : bound.stripped) {
    names.erase(saved);
    names[read] = saved;
  }
  return names;
}

std::string without_written_prefix(const ModelMap& map, const std::string& name) {
  const std::string& prefix = map.written_prefix;
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

}  // namespace shw
