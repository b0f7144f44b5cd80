// Preloaded by listing.sh: readdir(3) fails with EIO at the call that LISTING_FAULT counts.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>

#include <atomic>
#include <cstdlib>

namespace {

dirent* next_of(const char* name, DIR* folder) {
  static std::atomic<long> calls{0};
  const char* at = std::getenv("LISTING_FAULT");
  if (at != nullptr && ++calls == std::atol(at)) {
    errno = EIO;
    return nullptr;
  }
  return reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, name))(folder);
}

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
  return next_of("readdir", folder);
}
extern "C" struct dirent64* readdir64(DIR* folder) {
  return reinterpret_cast<struct dirent64*>(next_of("readdir64", folder));
}
