// On a bare machine there is neither xxHash nor OpenSSL: the one thing of core/base/hash.cpp that
// is linked here, and that nobody calls.
#include "core/base/hash.h"

namespace shw {

std::string to_hex(const Hash128&) {
  return {};
}

}  // namespace shw
