#include "core/io/same_file.h"

#include <sys/stat.h>

namespace shw {

std::optional<std::pair<std::uint64_t, std::uint64_t>> inode_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return std::pair<std::uint64_t, std::uint64_t>(status.st_dev, status.st_ino);
}

bool is_same_file(const std::string& a, const std::string& b) {
  auto one = inode_of(a);
  return one && one == inode_of(b);
}

}  // namespace shw
