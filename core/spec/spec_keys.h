// Keys of a spec's entries that nobody reads, and that are a letter or two away from one that is.
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
