// A library that reports that it was loaded; tests/start/runpath.sh puts it where no program may
// look.
#include <unistd.h>

namespace {
[[gnu::constructor]] void say() {
  constexpr char kWords[] = "PLANTED\n";
  [[maybe_unused]] auto ignored = ::write(STDOUT_FILENO, kWords, sizeof kWords - 1);
}
}  // namespace
