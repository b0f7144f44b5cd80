// The rows of a map on the tensors that are there: which tensors each row takes, under which names,
// with every size as a number.
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

// What tells, by names alone, which map is meant.
struct MapFit {
  std::size_t tensors = 0;     // that have a row
  bool is_as_written = false;  // names have the prefix that the map writes; breaks a tie
  auto operator<=>(const MapFit&) const = default;
};
MapFit fit_of(const ModelMap& map, MapWay way, std::span<const MapTensor> tensors,
              const ModelFacts& facts);
// `plain`: read_tensors() without a prefix. Reading Kimi-K2's 69,975 names anew for each map and
// each prefix doubled the time of a plan.
MapFit fit_of(const ModelMap& map, MapWay way, std::span<const MapTensor> tensors,
              const ReadTensors& plain, const ModelFacts& facts);

// kUsage names the value that has to be said. kUnsupported: a shape does not fit its row, or a
// counter that is stacked has gaps.
Result<BoundMap> bind_map(const ModelMap& map, MapWay way, std::span<const MapTensor> tensors,
                          const ModelFacts& facts);

}  // namespace shw
