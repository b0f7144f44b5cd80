// Finds the tensor of a base model for an adapter's name. Names may have different prefixes
// ("model.layers.0" and "model.language_model.layers.0").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/model/checkpoint.h"

namespace shw {

class BaseNames {
 public:
  explicit BaseNames(const Checkpoint& base);
  // The base tensor of this name, else the only one that shares a suffix of the name, where the
  // suffix includes the layer number. An adapter prefix always maps to one base prefix: nullopt if
  // earlier names mapped it to another.
  std::optional<TensorId> find(std::string_view name);

 private:
  const Checkpoint& base_;
  std::unordered_map<std::string, std::optional<TensorId>>
      tensor_by_suffix_;  // nullopt: not unique
  std::map<std::string, std::string> prefixes_,
      base_to_adapter_prefix_;  // adapter to base prefix, and back
};

}  // namespace shw
