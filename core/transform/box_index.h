// Index of boxes by their range along one dim, to find overlaps without visiting all boxes. Boxes
// are grouped by length, because one long box (the padding behind a thousand rows) would otherwise
// be a candidate for every query.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

class BoxIndex {
 public:
  explicit BoxIndex(std::size_t dim) : dim_(dim) {}
  void add(const Box& box, std::uint32_t index) {
    const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(box.sizes[dim_], 0));
    of_length_[static_cast<std::size_t>(std::bit_width(size))].push_back(
        {box.offsets[dim_], box.sizes[dim_], index});
  }
  // Must be called after the last add().
  void sort() {
    auto before = [](const Begin& a, const Begin& b) { return a.at < b.at; };
    for (auto& boxes : of_length_) {
      if (!std::is_sorted(boxes.begin(), boxes.end(), before))
        std::stable_sort(boxes.begin(), boxes.end(), before);
    }
  }
  // Calls visit(index) for boxes that overlap `box` along the dim, until it returns true.
  template <class Visit>
  bool visit_until_true_near(const Box& box, Visit&& visit) const {
    const std::int64_t begin = box.offsets[dim_], end = begin + box.sizes[dim_];
    for (std::size_t bits = 0; bits < of_length_.size(); ++bits) {
      const auto& boxes = of_length_[bits];
      // Boxes of this group are shorter than 2^bits.
      auto ends_before = [&](const Begin& one) {
        return one.at <= begin && static_cast<std::uint64_t>(begin - one.at) >> bits != 0;
      };
      auto at = std::partition_point(boxes.begin(), boxes.end(), ends_before);
      for (; at != boxes.end() && at->at < end; ++at) {
        if (at->at + at->size > begin && visit(at->index)) return true;
      }
    }
    return false;
  }
  // Collects the indices of boxes that overlap `box` along the dim, in the order of add().
  void near(const Box& box, std::vector<std::uint32_t>& found) const {
    found.clear();
    visit_until_true_near(box, [&](std::uint32_t index) {
      found.push_back(index);
      return false;
    });
    if (!std::is_sorted(found.begin(), found.end())) std::sort(found.begin(), found.end());
  }

 private:
  struct Begin {
    std::int64_t at = 0, size = 0;
    std::uint32_t index = 0;
  };
  std::size_t dim_;
  std::array<std::vector<Begin>, 64> of_length_ = {};
};

}  // namespace shw
