// Tensors of which one axis of the mesh vanished at save (S4, S5 E1): shared by axis-dropped, which
// places what survived, and writer-mosaic, which says where ranks of several coordinates are mixed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/layout/survivors.h"

namespace shw {

struct DroppedAxis {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::size_t axis = 0;             // of entry->mesh
  std::vector<std::size_t> others;  // axes that vanished together with it, none in most cases
  std::size_t dim = 0;              // of the tensor: the one that is too short
  std::int64_t factor = 1;          // by which (rounded up)
  bool by_grid = true;  // the chunks are those of the layout without the axis, writer by writer
  bool placed = false;  // survivors hold; otherwise `why_not` says what is missing
  std::vector<Survivor> survivors;
  std::vector<std::int64_t> coordinates;  // of the survivors' writers on the axis
  std::string why_not;
};

std::vector<DroppedAxis> dropped_axes(const CheckInput& input);

}  // namespace shw
