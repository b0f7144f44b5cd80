#include "core/facts/reference/alike_contents.h"

#include <span>

#include "core/base/checked.h"
#include "core/base/packed.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tensor_contents.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_places.h"

namespace shw {
namespace {

constexpr std::uint64_t kHeldOfSlab = std::uint64_t{32} << 20;
constexpr std::uint64_t kLookedAt = 4096;  // bytes, what TensorBoxes::start_of reads at most

std::vector<EqualSlices> equal_slices(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  TensorBoxes boxes(c, tensor, c.dtype(tensor), input.progress, decoded_for_places(input));
  std::map<std::string, std::vector<std::int64_t>> by_begin;
  Box slice = whole(c.shape(tensor));
  slice.sizes[0] = 1;
  auto at = [&](std::int64_t index) -> const Box& {
    slice.offsets[0] = index;
    return slice;
  };
  for (std::int64_t i = 0; i < c.shape(tensor)[0] && !is_cancelled(input.progress); ++i) {
    if (auto begin = boxes.start_of(at(i))) by_begin[*begin].push_back(i);
  }
  std::vector<EqualSlices> equal;
  for (const auto& [begin, group] : by_begin) {
    if (group.size() < 2) continue;
    std::map<std::string, std::int64_t> first;
    for (std::int64_t i : group) {
      auto content = boxes.content_of(at(i));
      if (!content || content->values.size() < kMaxValues) continue;
      auto [known, is_new] = first.try_emplace(content->hash, i);
      if (!is_new) equal.push_back({known->second, i});
    }
  }
  return equal;
}

}  // namespace

Result<std::vector<std::vector<EqualSlices>>> equal_slices_of(
    const CheckInput& input, const std::vector<TensorId>& tensors) {
  std::vector<std::vector<EqualSlices>> out(tensors.size());
  if (tensors.empty()) return out;
  std::vector<ComparisonCost> costs;
  for (TensorId tensor : tensors) {
    const auto slices = static_cast<std::uint64_t>(input.checkpoint.shape(tensor)[0]);
    costs.push_back({checked_mul(slices, kLookedAt).value_or(UINT64_MAX),
                     kHeldOfSlab + decoded_for_places(input)});
  }
  auto find = [&](std::size_t i) -> Result<std::string> {
    std::vector<std::uint64_t> pairs;
    for (const EqualSlices& one : equal_slices(input, tensors[i])) {
      pairs.push_back(static_cast<std::uint64_t>(one.first));
      pairs.push_back(static_cast<std::uint64_t>(one.second));
    }
    Packer words;
    words.add(pairs);
    return packed_text(words.take());
  };
  SHW_TRY(auto told, find_together(input, "look for copies of slices", costs, find));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Unpacker words(std::as_bytes(std::span(told[i])));
    SHW_TRY(const auto pairs, words.numbers());
    for (std::size_t at = 0; at + 1 < pairs.size(); at += 2)
      out[i].push_back(
          {static_cast<std::int64_t>(pairs[at]), static_cast<std::int64_t>(pairs[at + 1])});
  }
  return out;
}

Result<std::map<TensorId, std::string>> contents_of_alike(const CheckInput& input,
                                                          const std::vector<TensorId>& tensors) {
  const Checkpoint& c = input.checkpoint;
  const std::vector<ComparisonCost> costs(tensors.size(), {kLookedAt, kLookedAt});
  auto begin_of = [&](std::size_t i) -> Result<std::string> {
    TensorBoxes boxes(c, tensors[i], c.dtype(tensors[i]), input.progress);
    auto start = boxes.start_of(whole(c.shape(tensors[i])));
    if (!start) return std::string();
    return std::string(name(c.dtype(tensors[i]))) + to_text(c.shape(tensors[i])) + *start;
  };
  std::map<TensorId, std::string> contents;
  if (tensors.empty()) return contents;
  SHW_TRY(auto begins, find_together(input, "look for copies", costs, begin_of));
  std::map<std::string, std::vector<TensorId>> by_begin;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!begins[i].empty()) by_begin[begins[i]].push_back(tensors[i]);
  }
  std::vector<TensorId> alike;
  for (const auto& [begin, group] : by_begin) {
    if (group.size() > 1) alike.insert(alike.end(), group.begin(), group.end());
  }
  TensorContents whole_contents(input, c);
  SHW_CHECK(whole_contents.learn(alike));
  for (TensorId tensor : alike) contents.emplace(tensor, whole_contents.of(tensor));
  return contents;
}

}  // namespace shw
