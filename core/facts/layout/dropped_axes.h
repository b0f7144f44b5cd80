// Tensors that lost a mesh axis at save. Used by rule axis-dropped, which places the retained
// chunks, and writer-mosaic, which reports mixed coordinates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/facts/check_input.h"
#include "core/facts/layout/retained_chunks.h"

namespace shw {

struct DroppedAxis {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::size_t axis = 0;              // index in entry->mesh
  std::vector<std::size_t> others;   // axes that were lost together with it, mostly none
  std::size_t dim = 0;               // the dim of the tensor that is too short
  std::int64_t factor = 1;           // expected size / saved size, rounded up
  bool matches_grid_by_rank = true;  // the chunks match the layout without the axis, by rank
  bool placed = false;               // retained chunks are placed; otherwise see `why_not`
  std::vector<RetainedChunk> retained_chunks;
  std::vector<std::int64_t> coordinates;  // of the retained chunks' writers on the axis
  std::string why_not;
};

std::vector<DroppedAxis> dropped_axes(const CheckInput& input);

}  // namespace shw
