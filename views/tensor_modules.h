// What the list needs to know of every tensor's name, read once a checkpoint: a keystroke in the
// filter then sorts numbers, not names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// "layers.3.moe" is layer 3 of the family "layers.", and the rest is ".moe".
struct ModuleLayer {
  std::string_view before, rest;
  std::uint32_t number = 0;
  bool is_layer = false;
};

// A module that tensors stand in.
struct TensorModule {
  std::string_view name;  // "layers.3.moe.experts"; empty: none
  ModuleLayer layer;
  std::uint32_t family = 0;       // equal where `layer.before` is
  std::size_t rest_likeness = 0;  // of `layer.rest`
};

struct TensorModules {
  std::size_t prefix = 0;  // bytes that all FQNs share ("model."), left out of modules
  std::vector<TensorModule> modules;
  std::uint32_t families = 0;
  std::vector<std::uint32_t> module_of;  // one a tensor
  std::vector<std::size_t> likeness;     // one a tensor: of its name in the module, dtype, shape
};

TensorModules read_modules(const Checkpoint& checkpoint);
// Where the module ends in an FQN: "…experts" + "down_proj.weight".
std::size_t module_length(std::string_view fqn);
void mix_in(std::size_t& hash, std::size_t value);

}  // namespace shw
