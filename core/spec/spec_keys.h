// Unknown keys in spec entries that are probably misspelled known keys.
#pragma once

#include <string>
#include <vector>

#include "core/spec/spec.h"

namespace shw {

struct MisspeltKey {
  std::string fqn, key, meant;  // "fc.weight", "dtpye", "dtype"
};
std::vector<MisspeltKey> misspelt_keys(const Spec& spec);

}  // namespace shw
