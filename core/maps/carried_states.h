// Converts optimizer states together with their weights: each state of a weight's shape uses the
// weight's row. Operations that change values (a cast, padding that is not zero) are meant for
// weights and are not applied to moments.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/maps/bind_map.h"
#include "core/transform/steps.h"

namespace shw {

// The text with its first `mark`, such as "{name}", replaced by `by`.
std::string replace_first_mark(std::string text, std::string_view mark, std::string_view by);

// By kind ("exp_avg"), then by name of the weight: the name of the state, both as in the source.
struct CarriedStates {
  std::map<std::string, std::map<std::string, std::string>> by_kind = {};
  std::vector<std::string> left_out = {};  // FQNs of states that are not converted
};

// Finds the states that the target program can store and whose weight with the same shape exists.
// `leave_out`: shell patterns of states to skip.
CarriedStates find_states(std::span<const MapTensor> tensors, const MapStates& target,
                          const std::vector<std::string>& leave_out);

// Binds one map per kind of state. Afterwards `states` has their new names: in the form of
// `target`, or in an intermediate form if that is null.
std::vector<BoundMap> bind_states(const ModelMap& map, const BoundMap& weights,
                                  const MapStates* target, CarriedStates& states);

// A parameter as its states name it.
struct ParameterWithStates {
  std::string name;
  std::string weight;     // FQN
  bool is_adams = false;  // has exp_avg
};
// Parameters that have moments.
std::vector<ParameterWithStates> parameters_with_moments(const ModelMap& map, MapDirection way,
                                                         const CarriedStates& states);

// Steps that make float32 master weights from the weights, if the program needs masters and none
// are converted.
std::vector<Step> steps_that_make_masters(const ModelMap& map, MapDirection way,
                                          const MapStates& target, CarriedStates& states);

}  // namespace shw
