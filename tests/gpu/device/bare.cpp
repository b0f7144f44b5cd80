// Replacements for a machine without xxHash, OpenSSL and TBB: the one function of
// core/base/hash.cpp that is linked here but never called, and the number of cores from
// core/base/parallel.cpp.
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
