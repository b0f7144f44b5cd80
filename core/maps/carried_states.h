// Optimizer states that go through a map with their weights: each state of a weight's shape takes
// the row of its weight. Values that a row changes (a cast, padding that is not zero) are those of
// weights, and are not applied to moments.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/maps/bind_map.h"
#include "core/transform/steps.h"

namespace shw {

// By kind ("exp_avg"), then by the name of the weight: the name of the state, both as they are now.
struct CarriedStates {
  std::map<std::string, std::map<std::string, std::string>> by_kind = {};
  std::vector<std::string> left_out = {};  // states that do not go through
};

// The states that have a place in a program of that form, with a weight of their shape beside them.
// `leave_out`: shell patterns of those that stay behind.
CarriedStates find_states(std::span<const MapTensor> tensors, const MapStates& target,
                          const std::vector<std::string>& leave_out);

// The rows of the states, one map for each kind. `states` are then named as behind the map: by the
// form of `target`, or by one of their own where that is null.
std::vector<BoundMap> bind_states(const ModelMap& map, const BoundMap& weights,
                                  const MapStates* target, CarriedStates& states);

// Steps that make float32 masters of the weights, where the program needs them and none is carried.
std::vector<Step> masters_of_weights(const ModelMap& map, MapWay way, const MapStates& target,
                                     CarriedStates& states);

}  // namespace shw
