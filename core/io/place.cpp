#include "core/io/place.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/base/checked.h"

namespace shw {

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string parent_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

Result<std::string> resolved_path(const std::string& path) {
  auto resolve = [](const std::string& text) {
    return std::unique_ptr<char, decltype(&std::free)>(::realpath(text.c_str(), nullptr),
                                                       &std::free);
  };
  if (auto whole = resolve(path)) return std::string(whole.get());
  std::string clean = without_trailing_slashes(path);
  auto parent = resolve(parent_of(clean));
  if (parent == nullptr) {
    return fail(ErrorKind::kIo, std::string("cannot find the folder: ") + std::strerror(errno),
                {parent_of(clean)});
  }
  std::string name = clean.substr(clean.rfind('/') + 1);
  std::string base = parent.get();
  return (base == "/" ? "" : base) + "/" + name;
}

Result<std::uint64_t> free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    return fail(ErrorKind::kIo,
                std::string("cannot ask for the free space: ") + std::strerror(errno), {path});
  }
  return checked_mul(std::uint64_t{status.f_bavail}, std::uint64_t{status.f_frsize})
      .value_or(UINT64_MAX);
}

bool is_within(const std::string& inner, const std::string& outer) {
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || outer.back() == '/' || inner[outer.size()] == '/';
}

}  // namespace shw
