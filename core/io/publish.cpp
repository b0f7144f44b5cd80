#include "core/io/publish.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/io/list_names.h"
#include "core/io/path_text.h"
#include "core/io/random_name.h"
#include "core/io/system_calls.h"

namespace shw {
namespace {

Status sync_path(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  int code = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  if (code == 0) return {};
  return fail(ErrorKind::kIo, std::string("cannot flush it to disk: ") + std::strerror(code),
              {path});
}

tl::unexpected<Error> rename_error(const std::string& to, int code) {
  if (code == EEXIST || code == ENOTEMPTY) {
    return fail(ErrorKind::kIo, "already exists, and is never replaced", {to},
                "choose another name with --out");
  }
  return fail(ErrorKind::kIo,
              std::string("cannot rename it to its final name: ") + std::strerror(code), {to});
}

// Deletes the contents and closes `fd`. Links are deleted, not followed.
Status empty_folder(int fd, const std::string& path, int depth);

Status remove_entry(int folder, const std::string& name, const std::string& path, int depth) {
  if (::unlinkat(folder, name.c_str(), 0) == 0) return {};
  int code = errno;
  if ((code == EISDIR || code == EPERM) && depth < 64) {
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int below = ::openat(folder, name.c_str(), flags);
    if (below >= 0) {
      SHW_CHECK(empty_folder(below, path, depth + 1));
      if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0) return {};
      code = errno;
    }
  }
  return fail(ErrorKind::kIo, std::string("cannot remove it: ") + std::strerror(code), {path});
}

Status empty_folder(int fd, const std::string& path, int depth) {
  auto names = names_in(fd, path);
  Status status = names ? Status{} : Status(tl::unexpected<Error>(names.error()));
  for (std::size_t i = 0; status && i < names->size(); ++i)
    status = remove_entry(fd, (*names)[i], path + "/" + (*names)[i], depth);
  ::close(fd);
  return status;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

bool is_replaceable_folder(const std::string& path) {
  const std::string clean = without_trailing_slashes(path);
  const std::string name = clean.substr(clean.rfind('/') + 1);
  struct stat folder {};
  struct stat parent {};
  if (name.empty() || name == "." || name == ".." || !is_directory(clean)) return false;
  if (::lstat(clean.c_str(), &folder) != 0 || ::stat(parent_of(clean).c_str(), &parent) != 0 ||
      folder.st_dev != parent.st_dev)
    return false;
  const auto names = names_in(clean);
  return names && names->empty();
}

Status publish_directory(const std::string& temporary, const std::string& final_path) {
  std::string to = without_trailing_slashes(final_path);
  if (rename_to_new(temporary.c_str(), to.c_str()) != 0) {
    const int code = errno;
    // EINVAL: file systems without RENAME_NOREPLACE (NFS). Plain rename(2) replaces only an empty
    // directory, and other existing names are refused before.
    const bool replaces = is_directory(temporary) && is_replaceable_folder(to);
    if (code != EINVAL && code != ENOSYS && !replaces) return rename_error(to, code);
    struct stat status {};
    if (!replaces && ::lstat(to.c_str(), &status) == 0) return rename_error(to, EEXIST);
    if (::rename(temporary.c_str(), to.c_str()) != 0) return rename_error(to, errno);
  }
  return sync_path(parent_of(to), O_DIRECTORY);
}

TempFile::TempFile(const std::string& final_path) : final_path_(final_path) {
  constexpr std::size_t kMaxOfName = 180;  // limit of file names is 255 bytes
  const std::string name = final_path.substr(final_path.rfind('/') + 1).substr(0, kMaxOfName);
  path_ = parent_of(final_path) + "/." + name + kPartialMark + random_digits();
}

std::string TempFile::name() const {
  return path_.substr(path_.rfind('/') + 1);
}

TempFile::~TempFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status TempFile::publish() {
  SHW_CHECK(sync_path(path_, 0));
  SHW_CHECK(publish_directory(path_, final_path_));
  path_.clear();
  return {};
}

Status TempFile::replace() {
  struct stat before {};
  if (::lstat(final_path_.c_str(), &before) == 0) {
    if (!S_ISREG(before.st_mode)) {
      return fail(ErrorKind::kUsage, "is not a regular file, and is never replaced", {final_path_},
                  "choose another name with --out");
    }
    if (::chmod(path_.c_str(), before.st_mode & 0777) != 0) return rename_error(final_path_, errno);
  }
  SHW_CHECK(sync_path(path_, 0));
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) return rename_error(final_path_, errno);
  path_.clear();
  return sync_path(parent_of(final_path_), O_DIRECTORY);
}

Status discard_directory(const std::string& path, const std::string& marker) {
  std::string clean = without_trailing_slashes(path);
  std::size_t slash = clean.rfind('/');
  std::string name = slash == std::string::npos ? clean : clean.substr(slash + 1);
  if (marker.empty() || name.find(marker) == std::string::npos)
    return fail(ErrorKind::kUsage, "was not made by shardwright and is not removed", {path});
  int fd = ::open(clean.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorKind::kIo, std::string("cannot open the directory: ") + std::strerror(errno),
                {path});
  }
  SHW_CHECK(empty_folder(fd, clean, 0));
  if (::rmdir(clean.c_str()) != 0)
    return fail(ErrorKind::kIo, std::string("cannot remove it: ") + std::strerror(errno), {path});
  return {};
}

}  // namespace shw
