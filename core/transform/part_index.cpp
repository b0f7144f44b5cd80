#include "core/transform/part_index.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace shw {
namespace {

// Fewer than this are looked at one by one as fast as they are found.
constexpr std::size_t kFew = 8;

std::int64_t begin_of(const Part& part, std::size_t dim) {
  return part.box.offsets[dim];
}

// The dim with the most places where a part begins.
std::size_t most_cut(const ArrangedTensor& tensor) {
  std::size_t best = 0, most = 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    std::set<std::int64_t> begins;
    for (const Part& part : tensor.parts) begins.insert(begin_of(part, d));
    if (begins.size() <= most) continue;
    most = begins.size();
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
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return begin_of(tensor.parts[a], along_) < begin_of(tensor.parts[b], along_);
  });
  for (const Part& part : tensor.parts) longest_ = std::max(longest_, part.box.sizes[along_]);
}

std::vector<const Part*> PartIndex::near(const Box& tile) const {
  std::vector<const Part*> found;
  if (order_.empty()) {
    for (const Part& part : tensor_.parts) found.push_back(&part);
    return found;
  }
  const std::int64_t begin = tile.offsets[along_], end = begin + tile.sizes[along_];
  auto next = std::partition_point(order_.begin(), order_.end(), [&](std::uint32_t i) {
    return begin_of(tensor_.parts[i], along_) <= begin - longest_;
  });
  for (; next != order_.end() && begin_of(tensor_.parts[*next], along_) < end; ++next)
    found.push_back(&tensor_.parts[*next]);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Part> PartIndex::parts_of_tile(const Box& tile) const {
  std::vector<Part> parts;
  const BoxMove stay = staying(tile);
  for (const Part* part : near(tile)) {
    if (part->box == tile) return {*part};
    if (auto cut = moved_part(*part, stay)) parts.push_back(std::move(*cut));
  }
  return parts;
}

}  // namespace shw
