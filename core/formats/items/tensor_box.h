// Assembles a box of a tensor from the chunks that contain parts of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"

namespace shw {

// Writes the elements of `box` to `to`, row-major; elements in no chunk keep their bytes. Chunks
// with impossible boxes are skipped. Returns the boxes that were read, relative to `box`. Memory is
// bounded, whatever the sizes of box and chunks. `progress` counts bytes; may be null.
Result<std::vector<Box>> read_tensor_box(ItemCursor& items, TensorId tensor, const Box& box,
                                         std::span<std::byte> to, Progress* progress = nullptr);

}  // namespace shw
