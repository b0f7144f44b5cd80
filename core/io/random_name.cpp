#include "core/io/random_name.h"

#include <fmt/core.h>

#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "core/io/system_calls.h"

namespace shw {

std::string random_digits() {
  std::uint64_t number = 0;
  // Requests of eight bytes are never short. Kernels without getrandom(2) are older than 2014;
  // files are still created exclusively there.
  if (random_bytes(&number, sizeof number) != static_cast<ssize_t>(sizeof number)) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    number = static_cast<std::uint64_t>(now.tv_nsec) << 32 ^ static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{:016x}", number);
}

}  // namespace shw
