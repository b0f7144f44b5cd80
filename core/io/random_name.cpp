#include "core/io/random_name.h"

#include <fmt/core.h>

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace shw {

std::string random_digits() {
  std::uint64_t number = 0;
  // Eight bytes come whole. A kernel without getrandom(2) is older than 2014: what is made is
  // created exclusively all the same.
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{:016x}", number);
}

}  // namespace shw
