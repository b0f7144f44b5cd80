// The number of a layer in a name, and another one in its place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

// Tensors that differ from each other in one number of their names: "model.layers.", 7,
// ".mlp.weight". By the first part of the name that is a number.
struct LayerName {
  std::string before, after;
  std::int64_t number = 0;
};
std::optional<LayerName> layer_name_of(std::string_view fqn);

// The true number of every layer under "model.layers.".
struct LayerNumbers {
  std::string before;
  std::map<std::int64_t, std::int64_t> real;
};

// Whether a name belongs to these layers, wherever the layer's name stands in it ("optim.state." or
// "optim.param_groups." before it, wrappers put in), and what it is then.
struct NewNumber {
  std::string name;         // with the true number
  std::int64_t number = 0;  // the old one
  bool known = true;        // false: nothing says what the true number is
};
std::optional<NewNumber> with_real_number(std::string_view name, const LayerNumbers& numbers);

}  // namespace shw
