#pragma once

#include <string>

namespace shw {

// The known spec key within two letters of `key`; empty if there is
// none.
std::string nearest_spec_key(const std::string& key);

}  // namespace shw
