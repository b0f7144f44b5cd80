#include "core/facts/reference/content_search.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "core/base/hash.h"
#include "core/facts/evidence.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/reference/match.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_places.h"

namespace shw {
namespace {

constexpr std::int64_t kSearchSlabBytes = std::int64_t{4} << 20;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 21;  // per group, 48 bytes each
// Plans with more runs are unreadable: interleaved gate and up with 14,336 rows each are 28,672
// runs.
constexpr std::size_t kMostRuns = std::size_t{1} << 16;

std::vector<TensorId> reference_tensors_of_forms(const Checkpoint& reference, const Checkpoint& c,
                                                 const std::vector<TensorId>& tensors) {
  std::map<std::string, bool> forms;
  for (TensorId tensor : tensors) forms[dtype_and_shape_text(c, tensor)] = true;
  std::vector<TensorId> out;
  for (TensorId other : reference.tensors()) {
    if (forms.contains(dtype_and_shape_text(reference, other))) out.push_back(other);
  }
  return out;
}

// A tensor whose rows are compared byte for byte with another tensor's, because equal hashes can be
// constructed.
class RowComparer {
 public:
  RowComparer(const CheckInput& input, TensorId here)
      : progress_(input.progress),
        boxes_(input.checkpoint, here, input.checkpoint.dtype(here), input.progress,
               decode_budget_per_side(input)),
        shape_(copy_of(input.checkpoint.shape(here))) {}
  RowComparer(const CheckInput& input, const Checkpoint& reference, TensorId there)
      : progress_(input.progress),
        boxes_(reference, there, reference.dtype(there), input.progress,
               decode_budget_per_side(input)),
        shape_(copy_of(reference.shape(there))) {}

  // True if rows [from, from + count) equal the other tensor's rows from `at` on; both have one
  // width and dtype. False if they differ or cannot be read.
  bool has_rows_of(RowComparer& other, std::int64_t from, std::int64_t at, std::int64_t count) {
    const std::int64_t elements = volume(shape_).value_or(0) / std::max<std::int64_t>(1, shape_[0]);
    const std::int64_t at_once =
        std::max<std::int64_t>(1, kSearchSlabBytes / std::max<std::int64_t>(1, elements * 8));
    for (std::int64_t row = 0; row < count; row += at_once) {
      if (is_cancelled(progress_)) return false;
      const std::int64_t rows = std::min(at_once, count - row);
      auto a = rows_at(from + row, rows), b = other.rows_at(at + row, rows);
      if (!a || !b || !std::equal(a->begin(), a->end(), b->begin(), b->end())) return false;
    }
    return true;
  }
  std::int64_t rows() const { return shape_.empty() ? 0 : shape_[0]; }

 private:
  std::optional<Bytes> rows_at(std::int64_t first, std::int64_t count) {
    Box box = whole(shape_);
    box.offsets[0] = first;
    box.sizes[0] = count;
    return boxes_.elements(box);
  }

  Progress* progress_;
  TensorBoxes boxes_;
  Extents shape_;
};

// Compares tensors of one form completely; false for scalars, which may be equal by chance.
bool same_bytes(const CheckInput& input, TensorId here, TensorId there) {
  RowComparer ours(input, here), theirs(input, *input.reference, there);
  return ours.rows() != 0 && ours.rows() == theirs.rows() &&
         ours.has_rows_of(theirs, 0, 0, ours.rows());
}

// --- rows

using RowKey = std::string;  // 16 bytes of a hash

RowKey key_of(BytesView row) {
  const Hash128 hash = hash_of(row);
  RowKey key(16, '\0');
  std::memcpy(key.data(), &hash.high, 8);
  std::memcpy(key.data() + 8, &hash.low, 8);
  return key;
}

// One hash per row; nullopt if a row cannot be read.
std::optional<std::vector<RowKey>> hash_rows_of_tensor(const CheckInput& input, const Checkpoint& c,
                                                       TensorId tensor) {
  const Extents shape = copy_of(c.shape(tensor));
  const std::int64_t rows = shape[0];
  const std::int64_t width = volume(shape).value_or(0) / std::max<std::int64_t>(1, rows) *
                             static_cast<std::int64_t>(size_of(c.dtype(tensor)));
  if (width == 0) return std::nullopt;
  TensorBoxes boxes(c, tensor, c.dtype(tensor), input.progress, decode_budget_per_side(input));
  std::vector<RowKey> keys;
  const std::int64_t at_once = std::max<std::int64_t>(1, kSearchSlabBytes / width);
  for (std::int64_t row = 0; row < rows && !is_cancelled(input.progress); row += at_once) {
    Box box = whole(shape);
    box.offsets[0] = row;
    box.sizes[0] = std::min(at_once, rows - row);
    auto bytes = boxes.elements(box);
    if (!bytes || static_cast<std::int64_t>(bytes->size()) != box.sizes[0] * width)
      return std::nullopt;
    for (std::int64_t i = 0; i < box.sizes[0]; ++i)
      keys.push_back(key_of(BytesView(*bytes).subspan(static_cast<std::size_t>(i * width),
                                                      static_cast<std::size_t>(width))));
  }
  return keys;
}

struct RowPlace {
  std::size_t member = 0;  // index in the group
  std::int64_t row = 0;
};

// The rows of a group in this checkpoint by content, each usable once.
class RowPlaces {
 public:
  bool add(const CheckInput& input, const std::vector<TensorId>& group) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      auto keys = hash_rows_of_tensor(input, input.checkpoint, group[i]);
      if (!keys) return false;
      for (std::size_t row = 0; row < keys->size(); ++row)
        by_key_.add((*keys)[row], {i, static_cast<std::int64_t>(row)});
      is_taken_.emplace_back(keys->size(), false);
      keys_.push_back(std::move(*keys));
    }
    return true;
  }
  // An unused row with this content: preferably `own` place or the `next` one after the previous
  // match.
  std::optional<RowPlace> take(const RowKey& key, const RowPlace& own, const RowPlace& next) {
    for (const RowPlace& place : {own, next}) {
      const auto row = static_cast<std::size_t>(place.row);
      if (row < keys_[place.member].size() && !is_taken_[place.member][row] &&
          keys_[place.member][row] == key)
        return mark_row_used(place);
    }
    while (auto place = by_key_.take(key)) {
      if (!is_taken_[place->member][static_cast<std::size_t>(place->row)])
        return mark_row_used(*place);
    }
    return std::nullopt;
  }

 private:
  RowPlace mark_row_used(const RowPlace& place) {
    is_taken_[place.member][static_cast<std::size_t>(place.row)] = true;
    return place;
  }

  PlacesByContent<RowKey, RowPlace> by_key_;
  std::vector<std::vector<RowKey>> keys_;
  std::vector<std::vector<bool>> is_taken_;
};

std::int64_t rows_of_group(const Checkpoint& c, const std::vector<TensorId>& group) {
  std::int64_t rows = 0;
  for (TensorId tensor : group) rows += std::min(c.shape(tensor)[0], kMaxRows);
  return rows;
}

struct GroupRun {
  std::size_t tensor = 0, source = 0;  // indices in the group
  std::int64_t from = 0, count = 0, at = 0;
};

void add_row(std::size_t tensor, const RowPlace& place, std::int64_t at,
             std::vector<GroupRun>& runs) {
  GroupRun* last = runs.empty() || runs.back().tensor != tensor ? nullptr : &runs.back();
  if (last != nullptr && last->source == place.member && last->from + last->count == place.row)
    ++last->count;
  else
    runs.push_back({tensor, place.member, place.row, 1, at});
}

bool are_same_rows(const CheckInput& input, const std::vector<TensorId>& group,
                   const std::vector<GroupRun>& runs) {
  std::vector<std::unique_ptr<RowComparer>> ours, theirs;
  for (TensorId tensor : group) {
    ours.push_back(std::make_unique<RowComparer>(input, tensor));
    theirs.push_back(std::make_unique<RowComparer>(input, *input.reference,
                                                   *input.counterparts[index_of(tensor)]));
  }
  return std::all_of(runs.begin(), runs.end(), [&](const GroupRun& run) {
    return ours[run.source]->has_rows_of(*theirs[run.tensor], run.from, run.at, run.count);
  });
}

// Empty if a row is not found, or if all rows are in place.
std::vector<GroupRun> runs_of(const CheckInput& input, const std::vector<TensorId>& group) {
  RowPlaces places;
  if (!places.add(input, group)) return {};
  std::vector<GroupRun> runs;
  bool is_elsewhere = false;
  for (std::size_t i = 0; i < group.size(); ++i) {
    auto keys =
        hash_rows_of_tensor(input, *input.reference, *input.counterparts[index_of(group[i])]);
    if (!keys) return {};
    RowPlace next{i, 0};
    for (std::size_t row = 0; row < keys->size(); ++row) {
      const auto at = static_cast<std::int64_t>(row);
      const auto place = places.take((*keys)[row], {i, at}, next);
      if (!place || runs.size() > kMostRuns) return {};
      is_elsewhere = is_elsewhere || place->member != i;
      add_row(i, *place, at, runs);
      next = {place->member, place->row + 1};
    }
  }
  if (!is_elsewhere || !are_same_rows(input, group, runs)) return {};
  return runs;
}

std::vector<std::uint64_t> numbers_of(const std::vector<GroupRun>& runs) {
  std::vector<std::uint64_t> numbers;
  for (const GroupRun& run : runs) {
    for (std::int64_t number : {static_cast<std::int64_t>(run.tensor),
                                static_cast<std::int64_t>(run.source), run.from, run.count, run.at})
      numbers.push_back(static_cast<std::uint64_t>(number));
  }
  return numbers;
}

std::vector<RowsFound> rows_of(const std::vector<std::uint64_t>& numbers,
                               const std::vector<TensorId>& group) {
  std::vector<RowsFound> found;
  for (std::size_t i = 0; i + 5 <= numbers.size(); i += 5) {
    if (numbers[i] >= group.size() || numbers[i + 1] >= group.size()) break;
    const TensorId tensor = group[numbers[i]];
    if (found.empty() || found.back().tensor != tensor) found.push_back({tensor, {}});
    found.back().runs.push_back({group[numbers[i + 1]], static_cast<std::int64_t>(numbers[i + 2]),
                                 static_cast<std::int64_t>(numbers[i + 3]),
                                 static_cast<std::int64_t>(numbers[i + 4])});
  }
  return found;
}

}  // namespace

Result<std::vector<ContentFound>> find_contents(const CheckInput& input,
                                                const std::vector<TensorId>& tensors) {
  const Checkpoint &c = input.checkpoint, &reference = *input.reference;
  const std::vector<TensorId> others = reference_tensors_of_forms(reference, c, tensors);
  SHW_TRY(const auto here, hash_leading_elements(input, c, tensors, "look for contents"));
  SHW_TRY(const auto there, hash_leading_elements(input, reference, others, "look for contents"));
  std::map<std::string, std::vector<TensorId>> by_start;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!there[i].empty()) by_start[there[i]].push_back(others[i]);
  }
  std::vector<TensorId> alike, alike_there;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto found = here[i].empty() ? by_start.end() : by_start.find(here[i]);
    if (found == by_start.end()) continue;
    alike.push_back(tensors[i]);
    alike_there.insert(alike_there.end(), found->second.begin(), found->second.end());
  }
  TensorContents ours(input, c), theirs(input, reference);
  SHW_CHECK(ours.learn(alike));
  SHW_CHECK(theirs.learn(alike_there));
  std::vector<ContentFound> out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto group = here[i].empty() ? by_start.end() : by_start.find(here[i]);
    if (group == by_start.end() || ours.of(tensors[i]).empty()) continue;
    const auto own = input.counterparts[index_of(tensors[i])];
    std::optional<ContentFound> found;
    for (TensorId other : group->second) {
      if (theirs.of(other) != ours.of(tensors[i])) continue;
      if (!same_bytes(input, tensors[i], other)) continue;
      if (found) found->is_only = false;
      if (own && *own == other) break;
      if (!found) found = ContentFound{tensors[i], other};
    }
    if (found) out.push_back(*found);
  }
  return out;
}

Result<std::vector<std::vector<RowsFound>>> find_rows(
    const CheckInput& input, const std::vector<std::vector<TensorId>>& groups) {
  std::vector<ComparisonCost> costs;
  for (const auto& group : groups) {
    std::uint64_t reads = 0;
    for (TensorId tensor : group) reads += 2 * bytes_of_elements(input.checkpoint, tensor);
    costs.push_back(
        {reads, static_cast<std::uint64_t>(2 * kSearchSlabBytes +
                                           128 * rows_of_group(input.checkpoint, group))});
  }
  auto find = [&](std::size_t i) -> std::vector<std::uint64_t> {
    if (rows_of_group(input.checkpoint, groups[i]) > kMaxRows) return {};
    return numbers_of(runs_of(input, groups[i]));
  };
  std::vector<std::vector<RowsFound>> out;
  if (groups.empty()) return out;
  SHW_TRY(const auto told, map_numeric_comparisons(input, "look for rows", costs, find));
  for (std::size_t i = 0; i < told.size(); ++i) out.push_back(rows_of(told[i], groups[i]));
  return out;
}

namespace {

// The bias of a weight: "q_proj.bias" for "q_proj.weight".
std::optional<TensorId> bias_of(const Checkpoint& c, TensorId weight) {
  constexpr std::string_view kWeight = ".weight", kBias = ".bias";
  std::string fqn(c.fqn(weight));
  if (!fqn.ends_with(kWeight)) return std::nullopt;
  fqn.replace(fqn.size() - kWeight.size(), kWeight.size(), kBias);
  const auto bias = c.find(fqn);
  const bool fits = bias && c.shape(*bias).size() == 1 && c.shape(*bias)[0] == c.shape(weight)[0];
  return fits ? bias : std::nullopt;
}

bool has_rows_of_reference(const CheckInput& input, const RowsFound& bias) {
  const auto other = input.counterparts[index_of(bias.tensor)];
  if (!other || !same(input.checkpoint.shape(bias.tensor), input.reference->shape(*other)) ||
      input.checkpoint.dtype(bias.tensor) != input.reference->dtype(*other))
    return false;
  RowComparer there(input, *input.reference, *other);
  return std::all_of(bias.runs.begin(), bias.runs.end(), [&](const MovedRows& run) {
    RowComparer here(input, run.source);
    return here.has_rows_of(there, run.from, run.at, run.count);
  });
}

}  // namespace

std::vector<RowsFound> find_moved_biases(const CheckInput& input,
                                         const std::vector<RowsFound>& rows) {
  std::vector<RowsFound> found;
  for (const RowsFound& weight : rows) {
    const auto bias = bias_of(input.checkpoint, weight.tensor);
    if (!bias) continue;
    RowsFound own{*bias, weight.runs};
    for (MovedRows& run : own.runs) {
      const auto source = bias_of(input.checkpoint, run.source);
      if (!source) return {};
      run.source = *source;
    }
    if (!has_rows_of_reference(input, own)) return {};
    found.push_back(std::move(own));
  }
  return found;
}

PartlyLost copy_content_repair(const Checkpoint& checkpoint, TensorId target, TensorId source) {
  const Extents shape = copy_of(checkpoint.shape(target));
  return {target, shape,
          crop_to_retained_chunks(checkpoint, source, whole(shape), Extents(shape.size(), 0)), ""};
}

}  // namespace shw
