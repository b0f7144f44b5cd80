#include "core/maps/compare_mapped.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/words.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/facts/values/value_reader.h"
#include "core/formats/items.h"
#include "core/maps/diagnose_rows.h"
#include "core/maps/map_of_pair.h"
#include "core/maps/map_values.h"
#include "core/transform/named_entries.h"
#include "core/transform/part_reader.h"

namespace shw {
namespace {

// Both sides of one tensor are held in memory.
constexpr std::uint64_t kMostCompared = std::uint64_t{1} << 30;

std::string counter_word(const std::string& counter) {
  if (counter == "l") return "layer";
  if (counter == "e") return "expert";
  return counter;
}

// "q_proj" of "model.layers.{l}.self_attn.q_proj.weight".
std::string module_word(const std::string& pattern) {
  const std::size_t dot = pattern.rfind('.');
  if (dot == std::string::npos || dot == 0) return pattern;
  const std::size_t before = pattern.rfind('.', dot - 1);
  return pattern.substr(before == std::string::npos ? 0 : before + 1,
                        dot - (before == std::string::npos ? 0 : before + 1));
}

RowLayout layout_of(const ModelMap& map, const BoundRow& bound, std::int64_t head_dim) {
  const MapRow& row = map.rows[bound.row];
  RowLayout layout;
  layout.lead = bound.lead.size();
  layout.head_dim = head_dim;
  for (const std::string& counter : counters_in(row.from.front())) {
    if (!row.to.front().has(counter)) layout.counters.push_back(counter_word(counter));
  }
  for (const BoundOp& op : bound.ops) {
    const bool joins = op.kind == MapOp::Kind::kJoin || op.kind == MapOp::Kind::kRegroup;
    if (!joins && op.kind != MapOp::Kind::kUngroup) continue;
    layout.dim = op.dim;
    layout.parts = op.parts;
    layout.pieces = op.kind == MapOp::Kind::kUngroup ? 1 : op.pieces;
    layout.part_names.clear();
    for (std::size_t i = 0; i < op.parts.size(); ++i)
      layout.part_names.push_back(op.kind == MapOp::Kind::kJoin ? module_word(row.from[i].text)
                                                                : fmt::format("part {}", i + 1));
  }
  if (layout.parts.empty() && bound.to_shapes.size() == 1 && !bound.to_shapes.front().empty()) {
    layout.parts = {bound.to_shapes.front().front()};
    layout.part_names = {module_word(row.from.front().text)};
  }
  return layout;
}

// Numbers in names, and what is around them.
std::vector<std::int64_t> numbers_in(const std::string& name, std::string& around) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_digit = name[i] >= '0' && name[i] <= '9';
    const bool begins = i == 0 || name[i - 1] < '0' || name[i - 1] > '9';
    if (is_digit && begins) out.push_back(0);
    if (is_digit && out.back() < 1'000'000) out.back() = out.back() * 10 + (name[i] - '0');
    if (!is_digit) around += name[i];
  }
  return out;
}

// It holds what belongs to `of`: the same one of another layer or expert, or something else.
std::string moved_text(const std::string& fqn, const std::string& of) {
  std::string here, there;
  const auto is = numbers_in(fqn, here), was = numbers_in(of, there);
  if (here == there && is.size() == was.size()) {
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (is[i] == was[i]) continue;
      const char* what = i == 0 ? "layer" : "expert";
      const std::int64_t shift = was[i] - is[i];
      if (shift == 1 || shift == -1)
        return fmt::format("every {0} holds what belongs to the {1} one: {0}s are off by one", what,
                           shift > 0 ? "next" : "previous");
      return fmt::format("{0}s stand in another order: {0} {1} holds what belongs to {0} {2}", what,
                         is[i], was[i]);
    }
  }
  return "it holds what belongs to " + of;
}

using Kind = MappedDifference::Kind;

// What the map makes of one checkpoint, and another one that is in its world.
class MappedPair {
 public:
  MappedPair(const TargetState& mapped, const Checkpoint& other, const BoundMap& bound,
             const ModelMap& map, bool is_other_compared)
      : mapped_(mapped),
        other_(other),
        map_(map),
        is_other_compared_(is_other_compared),
        reader_(mapped) {
    for (const BoundRow& row : bound.rows) {
      for (const std::string& to : row.to) rows_[to] = &row;
    }
  }

  Result<MappedComparison> compare(const BoundMap& of_other, const MappedOptions& options,
                                   std::int64_t head_dim, Progress* progress) {
    head_dim_ = head_dim;
    reads_values_ = options.reads_values;
    names_ = saved_names(other_, of_other);
    for (std::size_t i = 0; i < mapped_.tensors.size(); ++i) {
      if (is_cancelled(progress)) return cancelled_error();
      auto found = names_.find(without_written_prefix(map_, mapped_.tensors[i].fqn));
      if (found == names_.end()) {
        add_alone(mapped_.tensors[i].fqn);
        continue;
      }
      SHW_CHECK(compare_one(i, found->second));
      names_.erase(found);
    }
    for (const std::string& left : of_other.left_out) names_.erase(left);
    for (const auto& [copy, of] : of_other.left_copies) names_.erase(copy);
    for (const auto& [read, saved] : names_)
      (is_other_compared_ ? out_.more : out_.missing).push_back({saved, {saved}});
    out_.reads_values = reads_values_;
    name_moved();
    // Weights of another step differ everywhere: a tensor that is still as it began is no mistake.
    if (out_.equal == 0) {
      for (const std::size_t at : constant_) out_.differences[at].kind = Kind::kValues;
    }
    return std::move(out_);
  }

 private:
  // Saturates: sizes come from files.
  static std::uint64_t bytes_of(Dtype dtype, const Extents& shape) {
    const auto elements = volume(shape);
    const auto bytes =
        elements ? checked_mul(*elements, std::int64_t{size_of(dtype)}) : std::nullopt;
    return bytes ? static_cast<std::uint64_t>(*bytes) : UINT64_MAX;
  }

  // A tensor that only the mapped one has.
  void add_alone(const std::string& fqn) {
    MappedAlone alone{fqn, {}};
    auto row = rows_.find(fqn);
    if (row != rows_.end()) {
      for (const auto& from : row->second->from)
        alone.here.insert(alone.here.end(), from.begin(), from.end());
    }
    if (alone.here.empty()) alone.here = {fqn};
    if (!is_other_compared_) alone.fqn = alone.here.front();
    (is_other_compared_ ? out_.missing : out_.more).push_back(std::move(alone));
  }

  Status compare_one(std::size_t entry, const std::string& saved) {
    SHW_TRY(const TargetTensor tensor, copy_of_entry(mapped_, entry));
    const TensorId at = *other_.find(saved);
    HeldTensor made{tensor.dtype, tensor.shape, {}};
    HeldTensor held{other_.dtype(at), copy_of(other_.shape(at)), {}};
    if (!reads_values_) {
      if (made.shape != held.shape)
        add(tensor.fqn, saved, shape_text(made, held), Kind::kShape);
      else if (made.dtype != held.dtype)
        add(tensor.fqn, saved, dtype_text(held.dtype, made.dtype), Kind::kDtype);
      return {};
    }
    if (bytes_of(made.dtype, made.shape) > kMostCompared ||
        bytes_of(held.dtype, held.shape) > kMostCompared) {
      out_.unread.push_back(saved);
      return {};
    }
    SHW_TRY(TensorValues values, read_tensor(other_, at, kMostCompared));
    held.bytes = std::move(values.bytes);
    if (values.uncovered != 0 || held.bytes.size() != bytes_of(held.dtype, held.shape)) {
      add(tensor.fqn, saved, "it is not whole: `check` says what is wrong", Kind::kDamaged);
      return {};
    }
    made.bytes.resize(bytes_of(made.dtype, made.shape));
    SHW_CHECK(read_parts(tensor, made));
    ++out_.compared;
    const Dtype is = held.dtype, was = made.dtype;
    if (is != was) widen(held, made);
    take_padding(tensor, held, made);
    moved_.emplace(to_hex(hash_of(reference_of(made, held).bytes)), tensor.fqn);
    const bool is_equal =
        made.dtype == held.dtype && made.shape == held.shape && made.bytes == held.bytes;
    if (!is_equal)
      add_difference(tensor.fqn, saved, made, held);
    else if (is == was)
      ++out_.equal;
    else
      add(tensor.fqn, saved, dtype_text(is, was) + "; the values are equal", Kind::kDtype);
    return {};
  }

  const HeldTensor& reference_of(const HeldTensor& made, const HeldTensor& held) const {
    return is_other_compared_ ? made : held;
  }
  const HeldTensor& compared_of(const HeldTensor& made, const HeldTensor& held) const {
    return is_other_compared_ ? held : made;
  }

  void add_difference(const std::string& fqn, const std::string& saved, const HeldTensor& made,
                      const HeldTensor& held) {
    const HeldTensor &is = compared_of(made, held), &was = reference_of(made, held);
    auto row = rows_.find(fqn);
    const RowLayout layout =
        row == rows_.end() ? RowLayout{} : layout_of(map_, *row->second, head_dim_);
    if (auto cause = wrong_conversion(is, was, layout)) {
      add(fqn, saved, std::move(*cause), Kind::kMistake, differing_cells(is, was, layout.lead));
      if (is_constant(is)) constant_.push_back(out_.differences.size() - 1);
    } else if (is.shape != was.shape) {
      add(fqn, saved, shape_text(made, held), Kind::kShape);
    } else {
      add(fqn, saved, values_text(is, was), Kind::kValues, differing_cells(is, was, layout.lead));
      moved_there_.emplace_back(out_.differences.size() - 1, to_hex(hash_of(is.bytes)));
    }
  }

  static bool is_constant(const HeldTensor& one) {
    const std::size_t width = size_of(one.dtype);
    return one.bytes.size() <= width ||
           std::equal(one.bytes.begin() + static_cast<std::ptrdiff_t>(width), one.bytes.end(),
                      one.bytes.begin());
  }

  // Numbers of two dtypes are compared as float32.
  static void widen(HeldTensor& held, HeldTensor& made) {
    if (!has_values(held.dtype) || !has_values(made.dtype)) return;
    for (HeldTensor* one : {&held, &made}) {
      const std::vector<float> values = to_floats(one->dtype, one->bytes);
      const auto bytes = std::as_bytes(std::span(values));
      one->bytes.assign(bytes.begin(), bytes.end());
      one->dtype = Dtype::kFloat32;
    }
  }
  std::string dtype_text(Dtype held, Dtype made) const {
    return fmt::format("it is {}, and {} was expected", name(is_other_compared_ ? held : made),
                       name(is_other_compared_ ? made : held));
  }
  // Cells of the leading dims that are not equal; empty: all of them count.
  static std::vector<std::size_t> differing_cells(const HeldTensor& is, const HeldTensor& was,
                                                  std::size_t lead) {
    std::vector<std::size_t> out;
    if (is.bytes.size() != was.bytes.size() || lead > is.shape.size()) return out;
    const auto count =
        static_cast<std::size_t>(volume(ExtentsView(is.shape).first(lead)).value_or(0));
    const std::size_t length = count == 0 ? 0 : is.bytes.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::memcmp(is.bytes.data() + i * length, was.bytes.data() + i * length, length) != 0)
        out.push_back(i);
    }
    return out;
  }

  void add(const std::string& fqn, const std::string& saved, std::string cause, Kind kind,
           const std::vector<std::size_t>& cells = {}) {
    MappedDifference difference{fqn, {}, std::move(cause), kind};
    auto row = rows_.find(fqn);
    if (is_other_compared_ || row == rows_.end()) {
      difference.subjects = {saved};
    } else {
      const auto& from = row->second->from;
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (cells.empty() || std::find(cells.begin(), cells.end(), i) != cells.end())
          difference.subjects.insert(difference.subjects.end(), from[i].begin(), from[i].end());
      }
    }
    out_.differences.push_back(std::move(difference));
  }

  Status read_parts(const TargetTensor& tensor, HeldTensor& made) {
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

  // Padding is whatever was trained there: it is not compared.
  static void take_padding(const TargetTensor& tensor, const HeldTensor& held, HeldTensor& made) {
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

  std::string shape_text(const HeldTensor& made, const HeldTensor& held) const {
    return fmt::format("its shape is {}, and {} was expected",
                       to_text(compared_of(made, held).shape),
                       to_text(reference_of(made, held).shape));
  }
  static std::string values_text(const HeldTensor& is, const HeldTensor& was) {
    if (is.dtype != was.dtype)
      return fmt::format("it is {}, and {} was expected; values differ too", name(is.dtype),
                         name(was.dtype));
    std::size_t differ = 0;
    const std::size_t width = size_of(was.dtype);
    for (std::size_t i = 0; i < was.bytes.size(); i += width)
      differ += std::memcmp(is.bytes.data() + i, was.bytes.data() + i, width) != 0 ? 1U : 0U;
    return fmt::format("{} of its {} elements differ, and no known mistake makes them so",
                       human_count(differ), human_count(was.bytes.size() / width));
  }

  // A tensor that is another one of the reference.
  void name_moved() {
    for (const auto& [at, hash] : moved_there_) {
      auto found = moved_.find(hash);
      MappedDifference& difference = out_.differences[at];
      if (found == moved_.end() || found->second == difference.fqn) continue;
      difference.cause = moved_text(difference.fqn, found->second);
      difference.kind = Kind::kMistake;
    }
  }

  const TargetState& mapped_;
  const Checkpoint& other_;
  const ModelMap& map_;
  const bool is_other_compared_;
  std::int64_t head_dim_ = 0;
  bool reads_values_ = true;
  PartReader reader_;
  std::map<std::string, const BoundRow*> rows_;
  std::map<std::string, std::string> names_;
  std::map<std::string, std::string> moved_;  // tensors of the reference by their hash
  std::vector<std::pair<std::size_t, std::string>> moved_there_;
  std::vector<std::size_t>
      constant_;  // differences: all elements of the compared one are one value
  MappedComparison out_;
};

std::int64_t head_dim_of(const ModelMap& map, const ModelFacts& facts) {
  const std::vector<MapTensor> none;
  const NumberedNames names;
  return MapValues(map, facts, none, names).value("head_dim").value_or(0);
}

}  // namespace

bool needs_map(const Checkpoint& a, const Checkpoint& b, const ModelFacts& facts) {
  const std::string world_a = world_of(named_shapes(a), facts);
  const std::string world_b = world_of(named_shapes(b), facts);
  return !world_a.empty() && !world_b.empty() && world_a != world_b;
}

Result<std::optional<MappedComparison>> compare_mapped(
    const std::shared_ptr<const Checkpoint>& compared,
    const std::shared_ptr<const Checkpoint>& reference, const MappedOptions& options,
    const ModelFacts& facts, Progress* progress) {
  const std::vector<MapTensor> shapes = named_shapes(*compared),
                               expected = named_shapes(*reference);
  SHW_TRY(const MapOfPair pair, map_of_pair(shapes, expected, options.map, facts));
  if (pair.map == nullptr) return std::optional<MappedComparison>();
  const ModelMap& map = *pair.map;
  const auto& one = pair.is_first_from ? compared : reference;
  const auto& other = pair.is_first_from ? reference : compared;
  const std::vector<MapTensor>& of_one = pair.is_first_from ? shapes : expected;
  BoundMap of_other;
  if (auto bound = bind_map(map, MapWay::kBack, pair.is_first_from ? expected : shapes, facts))
    of_other = std::move(*bound);
  const ModelFacts followed = facts_followed(map, of_one, *other, of_other, facts);
  SHW_TRY(MappedSteps steps, mapped_steps(*one, &map, map.to, followed, {{"*"}, true}));
  SHW_TRY(TargetState state, apply_steps(target_state_of(one), steps.steps, progress));
  MappedPair both(state, *other, steps.bound.back(), map, !pair.is_first_from);
  SHW_TRY(MappedComparison out, both.compare(of_other, options, head_dim_of(map, facts), progress));
  out.from = steps.from;
  out.to = steps.to;
  out.map = map.name;
  // Those of the other one are reported as tensors that it has alone.
  out.without_row = steps.bound.back().without_row;
  out.left_out = of_other.left_out;
  for (const std::string& name : steps.left_out) {
    if (std::find(out.without_row.begin(), out.without_row.end(), name) == out.without_row.end())
      out.left_out.push_back(name);
  }
  return std::optional(std::move(out));
}

}  // namespace shw
