// Binds the rows of a map to the tensors of a checkpoint: which tensors each row takes, under which
// names, with every size as a number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/maps/bound_map.h"
#include "core/maps/model_facts.h"
#include "core/maps/read_tensors.h"

namespace shw {

// How well a map fits, checked by names alone.
struct MapFit {
  std::size_t tensors = 0;     // number of tensors that have a row
  bool is_as_written = false;  // names have the prefix that the map writes; breaks a tie
  auto operator<=>(const MapFit&) const = default;
};
MapFit measure_map_fit(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                       const ModelFacts& facts);
// `plain` is read_tensors() without a prefix, computed once: parsing Kimi-K2's 69,975 names again
// for each map and prefix doubled the time of a plan.
MapFit measure_map_fit(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                       const ReadTensors& plain, const ModelFacts& facts);

// kUsage names the value that the user must give. kUnsupported: a shape does not fit its row, or
// the numbers of a stacked counter have gaps.
Result<BoundMap> bind_map(const ModelMap& map, MapDirection way, std::span<const MapTensor> tensors,
                          const ModelFacts& facts);

}  // namespace shw
