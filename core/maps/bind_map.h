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

namespace shw {

// What tells, by names alone, which map is meant.
struct MapFit {
  std::size_t tensors = 0;     // that have a row
  bool is_as_written = false;  // names have the prefix that the map writes; breaks a tie
  auto operator<=>(const MapFit&) const = default;
};
MapFit fit_of(const ModelMap& map, MapWay way, std::span<const MapTensor> tensors,
              const ModelFacts& facts);

// kUsage names the value that has to be said. kUnsupported: a shape does not fit its row, or a
// counter that is stacked has gaps.
Result<BoundMap> bind_map(const ModelMap& map, MapWay way, std::span<const MapTensor> tensors,
                          const ModelFacts& facts);

// The name under which a map reads a tensor: without what wrappers such as torch.compile put in.
std::string name_as_read(std::string name);

}  // namespace shw
