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

enum class StateOmissionReason : std::uint8_t {
  kNoPlace,           // the target program does not store this kind of state
  kByOption,          // the user named it
  kNoWeight,          // no weight has its name
  kOtherShape,        // its weight has another shape
  kNotElementwise,    // it does not have an element per element of its weight: a step
  kSecond,            // its weight has another state of this kind
  kNoWeightInTarget,  // its weight is not converted
  kIncomplete,        // a weight that its own is joined or stacked with has no such state
};
struct OmittedState {
  std::string fqn, kind;
  StateOmissionReason why = StateOmissionReason::kNoPlace;
};

// By kind ("exp_avg"), then by name of the weight: the name of the state, both as in the source.
struct CarriedStates {
  std::map<std::string, std::map<std::string, std::string>> by_kind = {};
  std::vector<OmittedState> left_out = {};
};

// How a program stores states in the forms that `facts` choose.
MapStates states_for_chosen_forms(const MapStates& states, const ModelFacts& facts);

// Finds the states that the target program can store and whose weight with the same shape exists.
// `parameters`: names and shapes of parameters that are saved as several weights. `leave_out`:
// shell patterns of states to skip.
CarriedStates find_states(std::span<const MapTensor> tensors, const MapStates& target,
                          const std::vector<std::string>& leave_out,
                          std::span<const MapTensor> parameters = {});

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
