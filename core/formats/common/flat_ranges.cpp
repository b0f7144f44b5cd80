#include "core/formats/common/flat_ranges.h"

#include <algorithm>

namespace shw {

void for_each_flat_box(ExtentsView shape, std::int64_t first, std::int64_t last,
                       const std::function<void(const Box&, std::int64_t)>& take) {
  const Extents strides = row_major_strides(shape);
  Box box{Extents(shape.size(), 0), Extents(shape.size(), 1)};
  while (first < last) {
    // The first axis whose slices begin at `first` and fit in the remaining range.
    std::size_t axis = 0;
    while (axis < shape.size() && (first % strides[axis] != 0 || last - first < strides[axis]))
      ++axis;
    std::int64_t rest = first;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      box.offsets[i] = i <= axis ? rest / strides[i] : 0;
      box.sizes[i] = i < axis ? 1 : shape[i];
      rest %= strides[i];
    }
    std::int64_t taken = 1;
    if (axis < shape.size()) {
      box.sizes[axis] = std::min((last - first) / strides[axis], shape[axis] - box.offsets[axis]);
      taken = box.sizes[axis] * strides[axis];
    }
    take(box, first);
    first += taken;
  }
}

}  // namespace shw
