// How a map joined the rows of a tensor, and which of its parts differ.
#pragma once

#include <set>
#include <span>
#include <utility>

#include "core/maps/bound_map.h"
#include "core/maps/loaded_tensor.h"
#include "core/maps/model_facts.h"
#include "core/maps/model_map.h"

namespace shw {

// Numbers of rows per head; 0 if unknown.
struct HeadSizes {
  std::int64_t head_dim = 0;
  // For MLA: without rotary positions, with them, and of values.
  std::int64_t nope = 0, rope = 0, value = 0;
};
HeadSizes head_sizes(const ModelMap& map, const ModelFacts& facts,
                     std::span<const MapTensor> tensors);

RowLayout layout_of(const ModelMap& map, const BoundRow& bound, const HeadSizes& heads);

// A cell of the stack and a part of its joined rows: one tensor on the map's left side.
using CellPart = std::pair<std::size_t, std::size_t>;
// The parts that differ; empty if the shapes differ, which means all. `stacked`: number of leading
// dims.
std::set<CellPart> differing_parts(const LoadedTensor& is, const LoadedTensor& was,
                                   std::size_t stacked, const RowLayout& layout);

}  // namespace shw
