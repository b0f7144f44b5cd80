#include "core/transform/part_index.h"

#include <algorithm>
#include <numeric>

namespace shw {
namespace {

// Fewer than this are looked at one by one as fast as they are found.
constexpr std::size_t kFew = 8;

std::int64_t begin_of(const Part& part, std::size_t dim) {
  return part.box.offsets[dim];
}

// In how many places something begins. In the order of a tensor most of them rise.
std::size_t distinct(std::vector<std::int64_t>& begins) {
  if (!std::is_sorted(begins.begin(), begins.end())) std::sort(begins.begin(), begins.end());
  return static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
}

// The dim with the most places where a part begins.
std::size_t most_cut(const ArrangedTensor& tensor) {
  std::size_t best = 0, most = 0;
  std::vector<std::int64_t> begins;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    begins.clear();
    for (const Part& part : tensor.parts) begins.push_back(begin_of(part, d));
    const std::size_t places = distinct(begins);
    if (places <= most) continue;
    most = places;
    best = d;
  }
  return best;
}

}  // namespace

PartIndex::PartIndex(const ArrangedTensor& tensor) : tensor_(tensor) {
  if (tensor.parts.size() < kFew || tensor.shape.empty()) return;
  along_ = most_cut(tensor);
  order_.resize(tensor.parts.size());
  std::iota(order_.begin(), order_.end(), 0u);
  auto before = [&](std::uint32_t a, std::uint32_t b) {
    return begin_of(tensor.parts[a], along_) < begin_of(tensor.parts[b], along_);
  };
  if (!std::is_sorted(order_.begin(), order_.end(), before))
    std::stable_sort(order_.begin(), order_.end(), before);
  begins_.reserve(order_.size());
  for (std::uint32_t i : order_) begins_.push_back(begin_of(tensor.parts[i], along_));
  for (const Part& part : tensor.parts) longest_ = std::max(longest_, part.box.sizes[along_]);
}

PartIndex::Range PartIndex::range_near(const Box& tile) const {
  const std::int64_t begin = tile.offsets[along_], end = begin + tile.sizes[along_];
  auto first = std::upper_bound(begins_.begin(), begins_.end(), begin - longest_);
  auto last = std::lower_bound(first, begins_.end(), end);
  return {static_cast<std::size_t>(first - begins_.begin()),
          static_cast<std::size_t>(last - begins_.begin())};
}

std::vector<const Part*> PartIndex::near(const Box& tile) const {
  std::vector<const Part*> found;
  if (order_.empty()) {
    for (const Part& part : tensor_.parts) found.push_back(&part);
    return found;
  }
  const Range range = range_near(tile);
  for (std::size_t i = range.first; i < range.last; ++i) found.push_back(&tensor_.parts[order_[i]]);
  std::sort(found.begin(), found.end());
  return found;
}

const Part* PartIndex::parts_of_tile(const Box& tile, std::vector<Part>& parts) const {
  parts.clear();
  const Range range = order_.empty() ? Range{0, tensor_.parts.size()} : range_near(tile);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const Part& part = tensor_.parts[order_.empty() ? i : order_[i]];
    if (part.box == tile) return &part;
  }
  for (const Part* part : near(tile)) {
    if (auto cut = part_inside(*part, tile)) parts.push_back(std::move(*cut));
  }
  return nullptr;
}

std::vector<Part> PartIndex::parts_of_tile(const Box& tile) const {
  std::vector<Part> parts;
  const Part* whole_tile = parts_of_tile(tile, parts);
  if (whole_tile != nullptr) parts.push_back(*whole_tile);
  return parts;
}

}  // namespace shw
