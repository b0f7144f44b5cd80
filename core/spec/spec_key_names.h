#pragma once

#include <string>

namespace shw {

// The key of a spec's entry that is read and that `key` is a letter or two away from; empty where
// there is none.
std::string nearest_spec_key(const std::string& key);

}  // namespace shw
