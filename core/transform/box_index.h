// Boxes by where they lie along one dim, so that those that may meet another are found without
// going through all of them. Boxes of like length stand together: one that is long, the padding
// behind a thousand rows, would else be near to everything.
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
  // After the last add().
  void sort() {
    auto before = [](const Begin& a, const Begin& b) { return a.at < b.at; };
    for (auto& boxes : of_length_) {
      if (!std::is_sorted(boxes.begin(), boxes.end(), before))
        std::stable_sort(boxes.begin(), boxes.end(), before);
    }
  }
  // Calls visit(index) for those that meet the box along the dim, until it is true.
  template <class Visit>
  bool any_near(const Box& box, Visit&& visit) const {
    const std::int64_t begin = box.offsets[dim_], end = begin + box.sizes[dim_];
    for (std::size_t bits = 0; bits < of_length_.size(); ++bits) {
      const auto& boxes = of_length_[bits];
      // Of 2^bits elements at the most, that one left out.
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
  // The same into `found`, from the first that was added to the last.
  void near(const Box& box, std::vector<std::uint32_t>& found) const {
    found.clear();
    any_near(box, [&](std::uint32_t index) {
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
