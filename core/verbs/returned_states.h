// Finds the source's optimizer states in a result that was converted back, whatever each program
// calls them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/maps/bound_map.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

class StatesAfterRoundTrip {
 public:
  // `weights`: the conversion's map, whose copies (tied weights) have the states of their
  // originals.
  StatesAfterRoundTrip(const Checkpoint& back, const BoundMap& weights);
  // The state of the same weight and kind; a master weight is found under any name of masters.
  std::optional<TensorId> find(std::string_view fqn) const;

 private:
  using Key = std::pair<std::string, std::string>;  // bare name of the weight, kind
  static std::optional<Key> key_of(std::string_view fqn);

  std::map<Key, TensorId> states_;
  std::map<std::string, std::string> originals_;  // by bare name of a copy
};

}  // namespace shw::verbs
