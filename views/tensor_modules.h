// Parsed tensor names, once per checkpoint: the filter then sorts numbers instead of
// names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/module_name.h"

namespace shw {

// "layers.3.moe" is layer 3 of family "layers." with rest ".moe".
struct ModuleLayer {
  std::string_view before, rest;
  std::uint32_t number = 0;
  bool is_layer = false;
};

// A module that contains tensors.
struct TensorModule {
  std::string_view name;  // "layers.3.moe.experts"; empty: top level
  ModuleLayer layer;
  std::uint32_t family = 0;       // equal for equal `layer.before`
  std::size_t rest_likeness = 0;  // hash of `layer.rest`
};

struct TensorModules {
  std::size_t prefix = 0;  // length of the common FQN prefix ("model."), omitted in modules
  std::vector<TensorModule> modules;
  std::uint32_t families = 0;
  std::vector<std::uint32_t> module_of;  // one per tensor
  std::vector<std::size_t> likeness;     // per tensor: hash of name in module, dtype and shape
};

TensorModules read_modules(const Checkpoint& checkpoint);
void hash_combine(std::size_t& hash, std::size_t value);

}  // namespace shw
