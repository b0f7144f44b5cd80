// Parameters as a program's optimizer names them, where its checkpoints save their weights apart:
// torchtitan saves wq, wk and wv, and its optimizer has states of the joined wqkv.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/maps/bind_map.h"

namespace shw {

enum class MapSide : std::uint8_t { kFrom, kTo };

// The map from saved weights to parameters; a weight without a row is its own parameter. nullopt if
// this side of the map joins none. `way`: kForward to write states, in the form that `facts`
// choose; kBack to read the states that are among `tensors`.
Result<std::optional<BoundMap>> bind_parameters(const ModelMap& map, MapSide side, MapDirection way,
                                                std::span<const MapTensor> tensors,
                                                const ModelFacts& facts);
// Names and shapes of the parameters that are joined of several weights.
std::vector<MapTensor> joined_parameters(const BoundMap& parameters);

}  // namespace shw
