#include "core/io/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <span>

#include "core/io/path_text.h"
#include "core/io/posix_error.h"
#include "core/io/publish.h"
#include "core/io/store.h"

namespace shw {
namespace {

constexpr int kMaxLinks = 40;  // the limit of the kernel

// True for links such as /dev/stdout or /proc/self/fd/1, which refer to an open file and not to a
// name.
bool is_open_file_of_process(const std::string& link) {
  struct statfs system {};
  return ::statfs(parent_of(link).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

Result<std::string> target_of_link(const std::string& link) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  if (length <= 0) return system_error("cannot read the link", link, length < 0 ? errno : ENOENT);
  std::string to(text.data(), static_cast<std::size_t>(length));
  if (to.starts_with('/')) return to;
  return parent_of(link) + "/" + to;
}

Status write_all_through(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) return system_error("cannot write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status write_special_file(const std::string& path, std::string_view text) {
  // O_APPEND keeps existing text if the shell redirected stdout with `> log`.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open it", path, errno);
  Status written = write_all_through(fd, path, text);
  if (::close(fd) != 0 && written) written = system_error("cannot close it", path, errno);
  return written;
}

}  // namespace

Result<OutputTarget> output_target(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (!S_ISDIR(status.st_mode)) return OutputTarget{path, true};
    return fail(ErrorKind::kUsage, "is a folder, and a file is to be written", {path},
                "name a file in it");
  }
  std::string at = path;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (::lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return OutputTarget{at};
    if (is_open_file_of_process(at)) return OutputTarget{at, true};
    SHW_TRY(at, target_of_link(at));
  }
  return fail(ErrorKind::kUsage, "is a link in a cycle", {path});
}

Status write_output_file(const std::string& path, std::string_view text) {
  SHW_TRY(OutputTarget target, output_target(path));
  if (target.is_special) return write_special_file(target.path, text);
  TempFile half_made(target.path);
  Status written = [&]() -> Status {
    SHW_TRY(auto folder, posix_store().edit_folder(parent_of(target.path)));
    SHW_CHECK(write_text(*folder, half_made.name(), text));
    return half_made.replace();
  }();
  // Errors show the user's path, not the temporary name.
  if (!written) written.error().place.file = path;
  return written;
}

}  // namespace shw
