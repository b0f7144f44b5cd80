// The tensor of a base model that an adapter means by a name. The two may be saved behind other
// prefixes ("model.layers.0" and "model.language_model.layers.0").
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
  // The tensor of that name, else the only one whose name ends alike, from its layer's number on.
  // Prefixes are exchanged in one way alone: nullopt where a name before was found by another way.
  std::optional<TensorId> find(std::string_view name);

 private:
  const Checkpoint& base_;
  std::unordered_map<std::string, std::optional<TensorId>> by_end_;  // nullopt: of several
  std::map<std::string, std::string> prefixes_, back_;  // of the adapter's name, of the base's
};

}  // namespace shw
