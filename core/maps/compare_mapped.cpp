#include "core/maps/compare_mapped.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/base/hash.h"
#include "core/base/words.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/facts/values/value_reader.h"
#include "core/formats/items/items.h"
#include "core/maps/diagnose_rows.h"
#include "core/maps/map_of_pair.h"
#include "core/maps/moved_tensors.h"
#include "core/maps/row_layout.h"
#include "core/model/state_names.h"
#include "core/transform/named_entries.h"
#include "core/transform/part_reader.h"

namespace shw {
namespace {

// Limit on a tensor's bytes, because both sides are in memory.
constexpr std::uint64_t kMaxCompared = std::uint64_t{1} << 30;

using Kind = MappedDifference::Kind;

Kind kind_of(const Mistake& mistake) {
  return mistake.kind == Mistake::Kind::kOrder ? Kind::kOrder : Kind::kMistake;
}

// The mapped checkpoint, and the other one, which is in the target's world.
class MappedPair {
 public:
  MappedPair(const TargetState& mapped, const Checkpoint& other, const BoundMap& bound,
             const ModelMap& map, const HeadSizes& heads, bool is_other_compared)
      : mapped_(mapped),
        other_(other),
        map_(map),
        heads_(heads),
        is_other_compared_(is_other_compared),
        reader_(mapped) {
    for (const BoundRow& row : bound.rows) {
      for (const std::string& to : row.to) rows_[to] = &row;
    }
    for (const auto& [read, saved] : saved_names(mapped.source(), bound)) source_.insert(read);
  }

  Result<MappedComparison> compare(const BoundMap& of_other, const MappedOptions& options,
                                   std::int64_t vocab, Progress* progress) {
    vocab_ = vocab;
    reads_values_ = options.reads_values;
    names_ = saved_names(other_, of_other);
    for (std::size_t i = 0; i < mapped_.tensors.size(); ++i) {
      if (is_cancelled(progress)) return cancelled_error();
      auto found = names_.find(without_written_prefix(map_, mapped_.tensors[i].fqn));
      if (found == names_.end()) {
        add_alone(mapped_.tensors[i].fqn);
        continue;
      }
      ++out_.in_both;
      SHW_CHECK(compare_mapped_entry(i, found->second));
      names_.erase(found);
    }
    for (const std::string& left : of_other.left_out) names_.erase(left);
    for (const auto& [copy, of] : of_other.omitted_copies) names_.erase(copy);
    for (const auto& [read, saved] : names_) {
      if (is_other_compared_)
        out_.more.push_back({saved, {saved}});
      else
        add_missing(of_other, read, saved);
    }
    out_.reads_values = reads_values_;
    match_moved_tensors();
    ignore_untrained_tensors();
    return std::move(out_);
  }

 private:
  // Adds a tensor that only the mapped checkpoint has.
  void add_alone(const std::string& fqn) {
    UnmatchedMappedTensor alone{fqn, {}};
    auto row = rows_.find(fqn);
    if (row != rows_.end()) {
      for (const auto& from : row->second->from)
        alone.here.insert(alone.here.end(), from.begin(), from.end());
    }
    if (alone.here.empty()) alone.here = {fqn};
    if (!is_other_compared_) alone.fqn = alone.here.front();
    (is_other_compared_ ? out_.missing : out_.more).push_back(std::move(alone));
  }

  // A tensor that only the reference has, by the names that its parts would have in the one that is
  // compared.
  void add_missing(const BoundMap& of_other, const std::string& read, const std::string& saved) {
    std::size_t missing = 0;
    for (const BoundRow& row : of_other.rows) {
      if (std::find(row.to.begin(), row.to.end(), read) == row.to.end()) continue;
      for (const auto& cell : row.from) {
        for (const std::string& fqn : cell) {
          if (source_.contains(fqn)) continue;
          out_.missing.push_back({fqn, {saved}});
          ++missing;
        }
      }
    }
    if (missing == 0) out_.missing.push_back({saved, {saved}});
  }

  Status compare_mapped_entry(std::size_t entry, const std::string& saved) {
    SHW_TRY(const TargetTensor tensor, copy_of_entry(mapped_, entry));
    const TensorId at = *other_.find(saved);
    LoadedTensor made{tensor.dtype, tensor.shape, {}};
    LoadedTensor held{other_.dtype(at), copy_of(other_.shape(at)), {}};
    if (!reads_values_) {
      if (made.shape != held.shape)
        add(tensor.fqn, saved, shape_text(made, held), Kind::kShape);
      else if (made.dtype != held.dtype)
        add(tensor.fqn, saved, dtype_mismatch_text(held.dtype, made.dtype), Kind::kDtype);
      return {};
    }
    if (bytes_when_loaded(made.dtype, made.shape) > kMaxCompared ||
        bytes_when_loaded(held.dtype, held.shape) > kMaxCompared) {
      out_.unread.push_back(saved);
      return {};
    }
    SHW_TRY(TensorValues values, read_tensor(other_, at, kMaxCompared));
    held.bytes = std::move(values.bytes);
    if (values.uncovered != 0 || held.bytes.size() != bytes_when_loaded(held.dtype, held.shape)) {
      add(tensor.fqn, saved, "it is incomplete: `shardwright check` shows what is wrong",
          Kind::kDamaged);
      return {};
    }
    made.bytes.resize(bytes_when_loaded(made.dtype, made.shape));
    SHW_CHECK(read_parts(tensor, made));
    ++out_.compared;
    const Dtype is = held.dtype, was = made.dtype;
    if (is != was) widen(held, made);
    copy_padding(tensor, held, made);
    moved_.emplace(to_hex(hash_of(reference_side_of(made, held).bytes)), tensor.fqn);
    const bool is_equal =
        made.dtype == held.dtype && made.shape == held.shape && made.bytes == held.bytes;
    const auto length = is_equal ? vocabulary_mismatch_text(tensor.fqn) : std::nullopt;
    if (!is_equal)
      add_difference(tensor.fqn, saved, made, held);
    else if (length)
      add(tensor.fqn, saved, *length, Kind::kMistake);
    else if (is == was)
      ++out_.equal;
    else
      add(tensor.fqn, saved, dtype_mismatch_text(is, was) + "; the values are equal", Kind::kDtype);
    return {};
  }

  const LoadedTensor& reference_side_of(const LoadedTensor& made, const LoadedTensor& held) const {
    return is_other_compared_ ? made : held;
  }
  const LoadedTensor& compared_of(const LoadedTensor& made, const LoadedTensor& held) const {
    return is_other_compared_ ? held : made;
  }

  void add_difference(const std::string& fqn, const std::string& saved, const LoadedTensor& made,
                      const LoadedTensor& held) {
    const LoadedTensor &is = compared_of(made, held), &was = reference_side_of(made, held);
    auto row = rows_.find(fqn);
    const RowLayout layout =
        row == rows_.end() ? RowLayout{} : layout_of(map_, *row->second, heads_);
    const std::size_t lead = row == rows_.end() ? 0 : row->second->lead.size();
    const std::set<CellPart> where = differing_parts(is, was, lead, layout);
    if (auto cause = diagnose_conversion(is, was, layout)) {
      add(fqn, saved, std::move(cause->text), kind_of(*cause), where);
      if (are_differing_cells_constant(is, lead, where))
        constant_.push_back(out_.differences.size() - 1);
    } else if (is.shape != was.shape) {
      add(fqn, saved, shape_text(made, held), Kind::kShape);
    } else {
      add(fqn, saved, values_text(is, was), Kind::kValues, where);
      moved_there_.emplace_back(out_.differences.size() - 1, to_hex(hash_of(is.bytes)));
    }
  }

  // Explains a wrong number of rows of a padded tensor: rows of real tokens were cut off as if they
  // were padding, or padding was kept as if it were tokens.
  std::optional<std::string> vocabulary_mismatch_text(const std::string& fqn) const {
    const auto row = rows_.find(fqn);
    if (is_other_compared_ || vocab_ <= 0 || row == rows_.end()) return std::nullopt;
    for (const BoundOp& op : row->second->ops) {
      if (op.kind != MapOp::Kind::kPad || op.size == vocab_) continue;
      return fmt::format(
          "it has {} rows, and the vocabulary has {}: the first {} are right, the "
          "others were {}",
          op.size, vocab_, std::min(op.size, vocab_),
          op.size < vocab_ ? "cut off" : "added, as padding is");
    }
    return std::nullopt;
  }

  // True if all elements of every cell that differs have one value.
  static bool are_differing_cells_constant(const LoadedTensor& one, std::size_t lead,
                                           const std::set<CellPart>& where) {
    const auto cells =
        lead > one.shape.size()
            ? 0
            : static_cast<std::size_t>(volume(ExtentsView(one.shape).first(lead)).value_or(0));
    const std::size_t length = cells == 0 ? 0 : one.bytes.size() / cells;
    const std::size_t width = size_of(one.dtype);
    return !where.empty() && std::all_of(where.begin(), where.end(), [&](const CellPart& part) {
      const BytesView cell = BytesView(one.bytes).subspan(part.first * length, length);
      return cell.size() <= width || std::equal(cell.begin() + static_cast<std::ptrdiff_t>(width),
                                                cell.end(), cell.begin());
    });
  }

  // Weights of another training step differ without a mistake, so a tensor that still has its
  // initial constant value is not a conversion mistake then.
  void ignore_untrained_tensors() {
    std::size_t values = 0, mistakes = 0;
    for (const MappedDifference& one : out_.differences) {
      values += one.kind == Kind::kValues ? 1U : 0U;
      mistakes += one.is_mistake() ? 1U : 0U;
    }
    const bool is_other_step = values != 0 && mistakes == constant_.size();
    if (out_.equal != 0 && !is_other_step) return;
    for (const std::size_t at : constant_) {
      out_.differences[at].kind = Kind::kValues;
      out_.differences[at].cause = "all that differs is of one value, as before training";
    }
  }

  // Converts both sides to float32, to compare numbers of two dtypes.
  static void widen(LoadedTensor& held, LoadedTensor& made) {
    if (!has_values(held.dtype) || !has_values(made.dtype)) return;
    for (LoadedTensor* one : {&held, &made}) {
      const std::vector<float> values = to_floats(one->dtype, one->bytes);
      const auto bytes = std::as_bytes(std::span(values));
      one->bytes.assign(bytes.begin(), bytes.end());
      one->dtype = Dtype::kFloat32;
    }
  }
  std::string dtype_mismatch_text(Dtype held, Dtype made) const {
    return fmt::format("it is {}, and {} was expected", name(is_other_compared_ ? held : made),
                       name(is_other_compared_ ? made : held));
  }
  void add(const std::string& fqn, const std::string& saved, std::string cause, Kind kind,
           const std::set<CellPart>& where = {}) {
    MappedDifference difference{fqn, {}, std::move(cause), kind};
    auto row = rows_.find(fqn);
    if (is_other_compared_ || row == rows_.end()) {
      difference.subjects = {saved};
    } else {
      const auto& from = row->second->from;
      for (std::size_t cell = 0; cell < from.size(); ++cell) {
        for (std::size_t part = 0; part < from[cell].size(); ++part) {
          if (where.empty() || where.contains({cell, part}))
            difference.subjects.push_back(from[cell][part]);
        }
      }
    }
    out_.differences.push_back(std::move(difference));
  }

  Status read_parts(const TargetTensor& tensor, LoadedTensor& made) {
    Bytes bytes;
    const Extents strides = row_major_strides(made.shape);
    const std::size_t width = size_of(made.dtype);
    for (const Part& part : tensor.parts) {
      SHW_CHECK(reader_.read(part, part.box, bytes));
      each_row(part.box, bytes, width, strides,
               [&](const Extents&, std::int64_t at, BytesView row) {
                 std::memcpy(made.bytes.data() + static_cast<std::size_t>(at) * width, row.data(),
                             row.size());
               });
    }
    return {};
  }

  // Copies padding from the saved tensor, because padding may have any value and is not compared.
  static void copy_padding(const TargetTensor& tensor, const LoadedTensor& held,
                           LoadedTensor& made) {
    if (held.shape != made.shape || held.dtype != made.dtype) return;
    const Extents strides = row_major_strides(made.shape);
    const std::size_t width = size_of(made.dtype);
    for (const Part& part : tensor.parts) {
      if (!part.is_padding()) continue;
      const auto packed = static_cast<std::size_t>(volume(part.box.sizes).value_or(0)) * width;
      each_row(part.box, BytesView(made.bytes).first(packed), width, strides,
               [&](const Extents&, std::int64_t at, BytesView row) {
                 const std::size_t first = static_cast<std::size_t>(at) * width;
                 std::memcpy(made.bytes.data() + first, held.bytes.data() + first, row.size());
               });
    }
  }

  std::string shape_text(const LoadedTensor& made, const LoadedTensor& held) const {
    return fmt::format("its shape is {}, and {} was expected",
                       to_text(compared_of(made, held).shape),
                       to_text(reference_side_of(made, held).shape));
  }
  static std::string values_text(const LoadedTensor& is, const LoadedTensor& was) {
    if (is.dtype != was.dtype)
      return fmt::format("it is {}, and {} was expected; values differ too", name(is.dtype),
                         name(was.dtype));
    std::size_t differ = 0;
    const std::size_t width = size_of(was.dtype);
    for (std::size_t i = 0; i < was.bytes.size(); i += width)
      differ += std::memcmp(is.bytes.data() + i, was.bytes.data() + i, width) != 0 ? 1U : 0U;
    return fmt::format("{} of its {} elements differ, and no known mistake explains it",
                       human_count(differ), human_count(was.bytes.size() / width));
  }

  // Finds tensors whose elements belong to another tensor of the reference.
  void match_moved_tensors() {
    std::vector<MovedTensor> moved;
    std::set<std::string> differing;
    for (const MappedDifference& one : out_.differences) differing.insert(one.fqn);
    for (const auto& [at, hash] : moved_there_) {
      auto found = moved_.find(hash);
      const std::string& fqn = out_.differences[at].fqn;
      if (found != moved_.end() && found->second != fqn)
        moved.push_back({at, fqn, found->second, !differing.contains(found->second)});
    }
    for (auto& [at, mistake] : moved_tensor_mistakes(moved)) {
      out_.differences[at].cause = std::move(mistake.text);
      out_.differences[at].kind = kind_of(mistake);
    }
  }

  const TargetState& mapped_;
  const Checkpoint& other_;
  const ModelMap& map_;
  const HeadSizes heads_;
  const bool is_other_compared_;
  std::int64_t vocab_ = 0;  // vocabulary size of the model; 0: unknown
  bool reads_values_ = true;
  PartReader reader_;
  std::map<std::string, const BoundRow*> rows_;
  std::set<std::string> source_;  // names of the mapped one, before the map
  std::map<std::string, std::string> names_;
  std::map<std::string, std::string> moved_;  // tensors of the reference by hash
  std::vector<std::pair<std::size_t, std::string>> moved_there_;
  std::vector<std::size_t>
      constant_;  // differences in which the compared elements all have one value
  MappedComparison out_;
};

// Checks an output head that the reference ties to the embedding: a copy of the embedding is right.
void check_head_against_embedding(const Checkpoint& compared, const MappedOptions& options,
                                  MappedComparison& out) {
  if (!options.reads_values) return;
  std::optional<TensorId> embedding;
  for (const TensorId tensor : compared.tensors()) {
    const std::string_view fqn = compared.fqn(tensor);
    if (fqn.ends_with("embed_tokens.weight") || fqn.ends_with("word_embeddings.weight") ||
        fqn.ends_with("tok_embeddings.weight"))
      embedding = tensor;
  }
  if (!embedding) return;
  for (const UnmatchedMappedTensor& alone : out.more) {
    const bool is_head = alone.fqn.ends_with("lm_head.weight") ||
                         alone.fqn.ends_with("output_layer.weight") ||
                         alone.fqn.ends_with("output.weight");
    const auto head = is_head ? compared.find(alone.fqn) : std::nullopt;
    if (!head) continue;
    const auto own = read_tensor(compared, *head, kMaxCompared);
    const auto tied = read_tensor(compared, *embedding, kMaxCompared);
    if (!own || !tied || own->bytes == tied->bytes) continue;
    out.differences.push_back(
        {alone.fqn,
         {alone.fqn},
         fmt::format("the reference ties the head to the embedding, and this head holds other "
                     "numbers than {}: a model that ties the two never uses it",
                     compared.fqn(*embedding)),
         Kind::kMistake});
  }
  std::erase_if(out.more, [&](const UnmatchedMappedTensor& alone) {
    return std::any_of(out.differences.begin(), out.differences.end(),
                       [&](const MappedDifference& one) { return one.fqn == alone.fqn; });
  });
}

// Checks copies that the other program does not save (tied heads, MTP layers): right if they equal
// the right content of their original.
void check_omitted_copies(const Checkpoint& compared, const BoundMap& bound,
                          const MappedOptions& options, MappedComparison& out) {
  if (!options.reads_values || bound.omitted_copies.empty()) return;
  const std::map<std::string, std::string> names = saved_names(compared, bound);
  std::set<std::string> wrong;
  for (const MappedDifference& one : out.differences)
    if (one.is_mistake()) wrong.insert(one.subjects.begin(), one.subjects.end());
  for (const auto& [copy, of] : bound.omitted_copies) {
    const auto saved = names.find(copy), original = names.find(of);
    if (saved == names.end() || original == names.end()) continue;
    const auto held = read_tensor(compared, *compared.find(saved->second), kMaxCompared);
    const auto right = read_tensor(compared, *compared.find(original->second), kMaxCompared);
    if (!held || !right) {
      out.unread.push_back(saved->second);
      continue;
    }
    // The check itself reports incomplete tensors.
    if (held->uncovered != 0 || right->uncovered != 0) continue;
    const bool is_equal =
        held->dtype == right->dtype
            ? held->bytes == right->bytes
            : has_values(held->dtype) && has_values(right->dtype) &&
                  to_floats(held->dtype, held->bytes) == to_floats(right->dtype, right->bytes);
    if (is_equal && !wrong.contains(original->second)) continue;
    out.differences.push_back(
        {saved->second,
         {saved->second},
         is_equal ? fmt::format("it is a copy of {}, and is wrong as that is", original->second)
                  : fmt::format("the other program has {} alone in its place, and the two hold "
                                "different numbers here",
                                original->second),
         is_equal ? Kind::kMistake : Kind::kValues});
  }
}

// True if nearly all names of `b` are names of `a` behind another prefix or wrapper: the two are of
// one program, and the prefix alone makes them look like another's.
bool differ_only_by_prefix(const Checkpoint& a, const Checkpoint& b) {
  std::set<std::string> names;
  for (const TensorId tensor : a.tensors()) names.insert(unwrapped_name(a.fqn(tensor)));
  std::size_t common = 0;
  for (const TensorId tensor : b.tensors()) common += names.contains(unwrapped_name(b.fqn(tensor)));
  return b.tensor_count() > 0 && common * 10 >= b.tensor_count() * 9;
}

}  // namespace

bool needs_map(const Checkpoint& a, const Checkpoint& b, const ModelFacts& facts) {
  const std::string world_a = naming_scheme_of(tensor_names_and_shapes(a), facts);
  const std::string world_b = naming_scheme_of(tensor_names_and_shapes(b), facts);
  return !world_a.empty() && !world_b.empty() && world_a != world_b && !differ_only_by_prefix(a, b);
}

Result<std::optional<MappedComparison>> compare_mapped(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedOptions& options,
    const ModelFacts& said, Progress* progress) {
  ModelFacts facts = said;
  facts.allows_gaps = true;
  const std::vector<MapTensor> shapes = tensor_names_and_shapes(*compared),
                               expected = tensor_names_and_shapes(*reference);
  SHW_TRY(const MapOfPair pair, map_of_pair(shapes, expected, options.map, facts));
  if (pair.map == nullptr) return std::optional<MappedComparison>();
  const ModelMap& map = *pair.map;
  const auto& one = pair.is_first_from ? compared : reference;
  const auto& other = pair.is_first_from ? reference : compared;
  const std::vector<MapTensor>& of_one = pair.is_first_from ? shapes : expected;
  BoundMap of_other;
  if (auto bound =
          bind_map(map, MapDirection::kBack, pair.is_first_from ? expected : shapes, facts))
    of_other = std::move(*bound);
  const ModelFacts followed = facts_from_other_side(map, of_one, *other, of_other, facts);
  SHW_TRY(MappedSteps steps, mapped_steps(*one, &map, map.to, followed, {{"*"}, true}));
  SHW_TRY(TargetState state, apply_steps(target_state_of(one), steps.steps, progress));
  MappedPair both(state, *other, steps.bound.back(), map, head_sizes(map, facts, of_one),
                  !pair.is_first_from);
  const auto vocab = facts.config.find("vocab_size");
  SHW_TRY(
      MappedComparison out,
      both.compare(of_other, options, vocab == facts.config.end() ? 0 : vocab->second, progress));
  check_head_against_embedding(*compared, options, out);
  check_omitted_copies(*compared, pair.is_first_from ? steps.bound.back() : of_other, options, out);
  out.from = steps.from;
  out.to = steps.to;
  out.map = map.name;
  // Lists unmapped tensors of the converted checkpoint only. Unmapped tensors of the other
  // checkpoint are reported as tensors that only it has.
  out.without_row = steps.bound.back().without_row;
  out.left_out = of_other.left_out;
  out.incomplete = steps.bound.back().incomplete;
  for (const std::string& name : steps.left_out) {
    if (std::find(out.without_row.begin(), out.without_row.end(), name) == out.without_row.end())
      out.left_out.push_back(name);
  }
  return std::optional(std::move(out));
}

}  // namespace shw
