#include "core/io/list_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string_view>

#include "core/io/posix_error.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"

namespace shw {
namespace {

// readdir(3) returns null both at the end and on errors; only errno tells them apart.
Result<std::vector<std::string>> names_of_stream(DIR* stream, const std::string& path) {
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* item = ::readdir(stream);
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return system_error("cannot list all of the folder", path, errno);
  return names;
}

// The distinct first parts of all paths in the remote place.
Result<std::vector<std::string>> names_in_remote(const std::string& path) {
  SHW_TRY(const OpenedRemote opened, open_remote(path));
  SHW_TRY(const std::vector<Entry> entries, opened.directory->list());
  std::set<std::string> names;
  for (const Entry& entry : entries) names.insert(entry.path.substr(0, entry.path.find('/')));
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace

Result<std::vector<std::string>> names_in(int folder, const std::string& path) {
  // A new descriptor, because reading moves its position and closedir(3) closes it.
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot list the folder", path, errno);
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const int code = errno;
    ::close(fd);
    return system_error("cannot list the folder", path, code);
  }
  auto names = names_of_stream(stream, path);
  ::closedir(stream);
  return names;
}

Result<std::vector<std::string>> names_in(const std::string& path) {
  if (is_remote(path)) return names_in_remote(path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot list the folder", path, errno);
  auto names = names_in(fd, path);
  ::close(fd);
  return names;
}

}  // namespace shw
