#include "core/facts/reference/alike_contents.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "core/base/checked.h"
#include "core/facts/evidence.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_places.h"
#include "core/facts/values/hole_check.h"

namespace shw {
namespace {

constexpr std::uint64_t kHeldOfSlab = std::uint64_t{32} << 20;
constexpr std::uint64_t kLookedAt = 4096;  // bytes, the limit of TensorBoxes::start()

// The parts of one tensor.
struct PartsOfTensor {
  std::int64_t count = 0;
  std::function<std::optional<std::string>(std::int64_t)> begin;
  std::function<std::optional<BoxContent>(std::int64_t)> content;
  std::function<bool(std::int64_t, std::int64_t)> are_apart;  // may be empty
  std::function<std::uint64_t(std::int64_t)> bytes;
};

std::vector<EqualParts> group_equal_parts(const PartsOfTensor& parts, Progress* progress) {
  std::map<std::string, std::vector<std::int64_t>> by_begin;
  for (std::int64_t i = 0; i < parts.count && !is_cancelled(progress); ++i) {
    if (auto begin = parts.begin(i)) by_begin[*begin].push_back(i);
  }
  std::vector<EqualParts> equal;
  for (const auto& [begin, group] : by_begin) {
    if (group.size() < 2) continue;
    std::map<std::string, std::int64_t> first;
    for (std::int64_t i : group) {
      // Few parts begin alike, so their reads are not in the initial total.
      if (progress != nullptr) progress->total.fetch_add(parts.bytes(i));
      auto content = parts.content(i);
      if (!content || content->values.size() < kMaxValues) continue;
      auto [known, is_new] = first.try_emplace(content->hash, i);
      if (!is_new && (!parts.are_apart || parts.are_apart(known->second, i)))
        equal.push_back({known->second, i});
    }
  }
  return equal;
}

std::vector<EqualParts> equal_slices(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  TensorBoxes boxes(c, tensor, c.dtype(tensor), input.progress, decode_budget_per_side(input));
  auto slice = [&](std::int64_t index) {
    Box box = whole(c.shape(tensor));
    box.offsets[0] = index;
    box.sizes[0] = 1;
    return box;
  };
  const std::uint64_t bytes_of_slice =
      bytes_of_elements(c, tensor) /
      static_cast<std::uint64_t>(std::max<std::int64_t>(c.shape(tensor)[0], 1));
  HoleCheck holes(c);
  auto begin = [&](std::int64_t i) -> std::optional<std::string> {
    auto start = boxes.start_of(slice(i));
    if (input.progress != nullptr) input.progress->add(kLookedAt);
    // Excludes unwritten zeros, whose equality means nothing.
    return start && !holes.is_hole(tensor, slice(i)) ? start : std::nullopt;
  };
  return group_equal_parts({c.shape(tensor)[0],
                            begin,
                            [&](std::int64_t i) { return boxes.content_of(slice(i)); },
                            {},
                            [&](std::int64_t) { return bytes_of_slice; }},
                           input.progress);
}

// True if the first two rows are equal: vocabulary rows filled with their mean.
bool has_equal_first_rows(TensorBoxes& boxes, ChunkId chunk, const Extents& sizes) {
  if (sizes.empty() || sizes[0] < 2) return true;
  Box row{Extents(sizes.size(), 0), sizes};
  row.sizes[0] = 1;
  auto first = boxes.part(chunk, row);
  row.offsets[0] = 1;
  return !first || first == boxes.part(chunk, row);
}

std::vector<EqualParts> equal_tiles(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  TensorBoxes boxes(c, tensor, c.dtype(tensor), input.progress, decode_budget_per_side(input));
  std::vector<ChunkId> chunks;
  for (ChunkId chunk : c.chunks(tensor)) chunks.push_back(chunk);
  HoleCheck holes(c);
  auto at = [&](std::int64_t i) { return chunks[static_cast<std::size_t>(i)]; };
  auto sizes = [&](std::int64_t i) { return copy_of(c.sizes(at(i))); };
  auto begin = [&](std::int64_t i) -> std::optional<std::string> {
    auto start = boxes.start_of(at(i), sizes(i));
    if (input.progress != nullptr) input.progress->add(kLookedAt);
    return start && !holes.is_hole(at(i)) ? std::optional(to_text(sizes(i)) + *start)
                                          : std::nullopt;
  };
  auto content = [&](std::int64_t i) -> std::optional<BoxContent> {
    if (has_equal_first_rows(boxes, at(i), sizes(i))) return std::nullopt;
    return boxes.content_of(at(i), sizes(i));
  };
  auto are_apart = [&](std::int64_t i, std::int64_t k) {
    return !intersect(box_of(c, at(i)), box_of(c, at(k)));
  };
  auto bytes = [&](std::int64_t i) {
    return static_cast<std::uint64_t>(volume(sizes(i)).value_or(0)) * size_of(c.dtype(tensor));
  };
  return group_equal_parts({count_of(chunks.size()), begin, content, are_apart, bytes},
                           input.progress);
}

using FindEqualParts = std::vector<EqualParts> (*)(const CheckInput& input, TensorId tensor);

Result<EqualPartsOfEach> parts_of_each(const CheckInput& input,
                                       const std::vector<TensorId>& tensors,
                                       const std::string& step,
                                       const std::vector<std::uint64_t>& parts,
                                       FindEqualParts find_parts) {
  EqualPartsOfEach out(tensors.size());
  if (tensors.empty()) return out;
  std::vector<ComparisonCost> costs;
  for (std::uint64_t count : parts)
    costs.push_back({checked_mul(count, kLookedAt).value_or(UINT64_MAX),
                     kHeldOfSlab + decode_budget_per_side(input)});
  auto find = [&](std::size_t i) {
    std::vector<std::uint64_t> pairs;
    for (const EqualParts& one : find_parts(input, tensors[i])) {
      pairs.push_back(static_cast<std::uint64_t>(one.first));
      pairs.push_back(static_cast<std::uint64_t>(one.second));
    }
    return pairs;
  };
  SHW_TRY(const auto told, map_numeric_comparisons(input, step, costs, find));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& pairs = told[i];
    for (std::size_t at = 0; at + 1 < pairs.size(); at += 2)
      out[i].push_back(
          {static_cast<std::int64_t>(pairs[at]), static_cast<std::int64_t>(pairs[at + 1])});
  }
  return out;
}

}  // namespace

Result<EqualPartsOfEach> find_equal_slices(const CheckInput& input,
                                           const std::vector<TensorId>& tensors) {
  std::vector<std::uint64_t> slices;
  for (TensorId tensor : tensors)
    slices.push_back(static_cast<std::uint64_t>(input.checkpoint.shape(tensor)[0]));
  return parts_of_each(input, tensors, "look for copies of slices", slices, equal_slices);
}

Result<EqualPartsOfEach> find_equal_tiles(const CheckInput& input,
                                          const std::vector<TensorId>& tensors) {
  std::vector<std::uint64_t> tiles;
  for (TensorId tensor : tensors) tiles.push_back(input.checkpoint.chunks(tensor).size());
  return parts_of_each(input, tensors, "look for copies of chunks", tiles, equal_tiles);
}

Result<std::map<TensorId, std::string>> hash_similar_tensors(const CheckInput& input,
                                                             const std::vector<TensorId>& tensors) {
  std::map<TensorId, std::string> contents;
  if (tensors.empty()) return contents;
  SHW_TRY(auto begins, hash_leading_elements(input, input.checkpoint, tensors, "look for copies"));
  std::map<std::string, std::vector<TensorId>> by_begin;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!begins[i].empty()) by_begin[begins[i]].push_back(tensors[i]);
  }
  std::vector<TensorId> alike;
  for (const auto& [begin, group] : by_begin) {
    if (group.size() > 1) alike.insert(alike.end(), group.begin(), group.end());
  }
  TensorContents whole_contents(input, input.checkpoint);
  SHW_CHECK(whole_contents.learn(alike));
  for (TensorId tensor : alike) contents.emplace(tensor, whole_contents.of(tensor));
  return contents;
}

}  // namespace shw
