// On a bare machine there is neither xxHash nor OpenSSL nor TBB: of core/base/hash.cpp the one
// thing that is linked here and that nobody calls, and of core/base/parallel.cpp how many cores
// there are.
#include <algorithm>
#include <thread>

#include "core/base/hash.h"
#include "core/base/parallel.h"

namespace shw {

std::string to_hex(const Hash128&) {
  return {};
}

std::size_t worker_count() {
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace shw
