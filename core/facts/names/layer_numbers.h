// Parses and replaces layer numbers in names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

// A name split at its first numeric part: "model.layers.", 7,
// ".mlp.weight".
struct LayerName {
  std::string before, after;
  std::int64_t number = 0;
};
std::optional<LayerName> layer_name_of(std::string_view fqn);

// The correct number of every layer under "model.layers.".
struct LayerNumbers {
  std::string before;
  std::map<std::int64_t, std::int64_t> real;
};

// The new name of a tensor or entry of these layers, wherever the layer's name is in it (after
// "optim.state." or "optim.param_groups.", with wrappers inserted).
struct CorrectLayerNumber {
  std::string name;         // with the correct number
  std::int64_t number = 0;  // the old number
  bool known = true;        // false: the correct number is unknown
};
std::optional<CorrectLayerNumber> with_correct_layer_number(std::string_view name,
                                                            const LayerNumbers& numbers);

}  // namespace shw
