#include "core/facts/reference/repeated_parts.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_places.h"

namespace shw {
namespace {

constexpr std::uint64_t kStarts = 32 * 4096;  // begins of the parts that are compared
constexpr std::int64_t kMaxParts = 4096;
constexpr std::size_t kMinDistinctOfPart = 8;

// Possible part lengths, shortest first: the number of parts may be a number of ranks.
std::vector<std::int64_t> lengths_of(std::int64_t rows, std::int64_t known, bool is_vector) {
  if (known > 0) {
    const bool fits = rows > known && rows % known == 0 && rows / known <= kMaxParts;
    return fits ? std::vector<std::int64_t>{known} : std::vector<std::int64_t>{};
  }
  std::vector<std::int64_t> lengths;
  for (std::int64_t parts : {64, 32, 16, 12, 8, 7, 6, 5, 4, 3, 2}) {
    // Requires several rows per part, because some matrices begin with equal rows.
    if (rows % parts == 0 && rows / parts >= (is_vector ? 8 : 2)) lengths.push_back(rows / parts);
  }
  return lengths;
}

class PartsOfRows {
 public:
  PartsOfRows(const CheckInput& input, TensorId tensor)
      : shape_(copy_of(input.checkpoint.shape(tensor))),
        boxes_(input.checkpoint, tensor, input.checkpoint.dtype(tensor), input.progress,
               decode_budget_per_side(input)) {}

  bool are_equal(std::int64_t rows) {
    const std::int64_t parts = shape_[0] / rows;
    const auto start = boxes_.start_of(part(0, rows));
    for (std::int64_t i : {std::int64_t{1}, parts - 1}) {
      if (!start || boxes_.start_of(part(i, rows)) != start) return false;
    }
    const auto first = boxes_.content_of(part(0, rows));
    for (std::int64_t i = 1; i < parts; ++i) {
      const auto other = first ? boxes_.content_of(part(i, rows)) : std::nullopt;
      if (!other || other->hash != first->hash) return false;
    }
    return true;
  }
  bool tells(std::int64_t rows) {
    const auto content = boxes_.content_of(part(0, rows));
    return content && content->values.size() >= kMinDistinctOfPart;
  }

 private:
  Box part(std::int64_t index, std::int64_t rows) const {
    Box box = whole(shape_);
    box.offsets[0] = index * rows;
    box.sizes[0] = rows;
    return box;
  }

  Extents shape_;
  TensorBoxes boxes_;
};

std::vector<std::uint64_t> encode_repeats_of_tensor(const CheckInput& input,
                                                    const RepeatQuery& asked) {
  const ExtentsView shape = input.checkpoint.shape(asked.tensor);
  RepeatedParts found;
  if (!shape.empty()) {
    PartsOfRows parts(input, asked.tensor);
    for (std::int64_t rows : lengths_of(shape[0], asked.rows, shape.size() == 1)) {
      if (!parts.are_equal(rows)) continue;
      found = {shape[0] / rows, rows, parts.tells(rows)};
      break;
    }
  }
  return {static_cast<std::uint64_t>(found.parts), static_cast<std::uint64_t>(found.rows),
          std::uint64_t{found.tells}};
}

}  // namespace

Result<std::vector<RepeatedParts>> find_repeated_parts(const CheckInput& input,
                                                       const std::vector<RepeatQuery>& asked) {
  std::vector<RepeatedParts> out;
  if (asked.empty()) return out;
  const std::vector<ComparisonCost> costs(asked.size(),
                                          {kStarts, kStarts + decode_budget_per_side(input)});
  auto find = [&](std::size_t i) { return encode_repeats_of_tensor(input, asked[i]); };
  SHW_TRY(const auto told, map_numeric_comparisons(input, "look for repeated parts", costs, find));
  for (const auto& numbers : told) {
    if (numbers.size() != 3)
      return fail(ErrorKind::kIo, "a message from another process is truncated");
    out.push_back({static_cast<std::int64_t>(numbers[0]), static_cast<std::int64_t>(numbers[1]),
                   numbers[2] != 0});
  }
  return out;
}

}  // namespace shw
