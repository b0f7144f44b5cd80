#include "core/transform/part_index.h"

#include <algorithm>

namespace shw {
namespace {

// Fewer parts are searched linearly as fast.
constexpr std::size_t kFew = 8;

std::int64_t begin_of(const Part& part, std::size_t dim) {
  return part.box.offsets[dim];
}

// Number of different values. In a tensor's order most are sorted.
std::size_t count_distinct(std::vector<std::int64_t>& begins) {
  if (!std::is_sorted(begins.begin(), begins.end())) std::sort(begins.begin(), begins.end());
  return static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
}

// The dim with the most different part offsets.
std::size_t most_divided_dim(const TargetTensor& tensor) {
  std::size_t best = 0, most = 0;
  std::vector<std::int64_t> begins;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    begins.clear();
    for (const Part& part : tensor.parts) begins.push_back(begin_of(part, d));
    const std::size_t places = count_distinct(begins);
    if (places <= most) continue;
    most = places;
    best = d;
  }
  return best;
}

}  // namespace

PartIndex::PartIndex(const TargetTensor& tensor) : tensor_(tensor) {
  if (tensor.parts.size() < kFew || tensor.shape.empty()) return;
  index_.emplace(most_divided_dim(tensor));
  for (std::uint32_t i = 0; i < tensor.parts.size(); ++i) index_->add(tensor.parts[i].box, i);
  index_->sort();
}

std::vector<const Part*> PartIndex::near(const Box& tile) const {
  std::vector<const Part*> found;
  if (!index_) {
    for (const Part& part : tensor_.parts) found.push_back(&part);
    return found;
  }
  index_->visit_until_true_near(tile, [&](std::uint32_t i) {
    found.push_back(&tensor_.parts[i]);
    return false;
  });
  std::sort(found.begin(), found.end());
  return found;
}

const Part* PartIndex::find_part_with_box(const Box& tile) const {
  auto is_it = [&](const Part& part) { return part.box == tile; };
  if (!index_) {
    const auto found = std::find_if(tensor_.parts.begin(), tensor_.parts.end(), is_it);
    return found == tensor_.parts.end() ? nullptr : &*found;
  }
  const Part* whole = nullptr;
  index_->visit_until_true_near(tile, [&](std::uint32_t i) {
    if (is_it(tensor_.parts[i])) whole = &tensor_.parts[i];
    return whole != nullptr;
  });
  return whole;
}

const Part* PartIndex::parts_of_tile(const Box& tile, std::vector<Part>& parts) const {
  parts.clear();
  if (const Part* whole = find_part_with_box(tile)) return whole;
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
