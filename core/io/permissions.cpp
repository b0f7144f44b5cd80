#include "core/io/permissions.h"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/io/list_names.h"
#include "core/io/path_text.h"
#include "core/io/posix_error.h"

namespace shw {
namespace {

bool supports_permissions(const Store& store) {
  return &store == &posix_store();
}

// Read once at start: umask(2) can only be read by setting it, here to the strictest value.
mode_t mask_of_process() {
  static const mode_t mask = [] {
    const mode_t was = ::umask(077);
    ::umask(was);
    return was;
  }();
  return mask;
}

constexpr const char* kFileOriginAdvice =
    "find out where it comes from, remove it, and run this again";

Status check_is_own(const std::string& path, const struct stat& status) {
  if (status.st_uid == ::geteuid()) return {};
  return fail(ErrorKind::kUsage,
              fmt::format("belongs to user {}, but this program runs as user {}: runs of other "
                          "users cannot be resumed",
                          status.st_uid, ::geteuid()),
              {path}, kFileOriginAdvice);
}

Status check_is_not_shared(const std::string& path, const struct stat& status) {
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(ErrorKind::kUsage,
              "other users may write to it, so it is not known who started this run", {path},
              kFileOriginAdvice);
}

// Checks owner and permissions of a file; in a private folder (`is_shielded`) permissions do not
// matter.
Status check_file_is_own(const std::string& path, bool is_shielded) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? Status{} : Status(system_error("cannot look at it", path, errno));
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::kUsage, "is not a regular file", {path}, kFileOriginAdvice);
  SHW_CHECK(check_is_own(path, status));
  return is_shielded ? Status{} : check_is_not_shared(path, status);
}

// File systems without permissions (FAT, some network ones) refuse chmod.
Status change_mode(const std::string& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) == 0) return {};
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return {};
  return system_error("cannot change its rights", path, errno);
}

Status limit_mode(const std::string& path, unsigned most) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_error("cannot look at it", path, errno);
  if (S_ISLNK(status.st_mode) || (status.st_mode & 0777 & ~most) == 0) return {};
  return change_mode(path, status.st_mode & 07777 & ~(0777 & ~most));
}

Status limit_permissions_below(const std::string& folder, const PermissionLimit& most, int depth) {
  constexpr int kMostDepth = 64;
  SHW_TRY(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return system_error("cannot look at it", path, errno);
    const bool is_folder = S_ISDIR(status.st_mode);
    SHW_CHECK(limit_mode(path, is_folder ? most.folders : most.files));
    if (is_folder && depth < kMostDepth) SHW_CHECK(limit_permissions_below(path, most, depth + 1));
  }
  return {};
}

void narrow_to(const std::string& path, unsigned own, unsigned& most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) most &= (status.st_mode & 0777) | own;
}

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (real == nullptr) return std::nullopt;
  return std::string(real.get());
}

}  // namespace

Status check_owned_by_this_user(const Store& store, const std::string& folder,
                                const std::vector<std::string>& files) {
  if (!supports_permissions(store)) return {};
  const std::string clean = without_trailing_slashes(folder);
  struct stat status {};
  if (::lstat(clean.c_str(), &status) != 0) return system_error("cannot look at it", clean, errno);
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorKind::kUsage, "is a link or a file, and no folder", {clean},
                kFileOriginAdvice);
  SHW_CHECK(check_is_own(clean, status));
  SHW_CHECK(check_is_not_shared(clean, status));
  const bool is_shielded = (status.st_mode & (S_IXGRP | S_IXOTH)) == 0;
  for (const std::string& file : files)
    SHW_CHECK(check_file_is_own(clean + "/" + file, is_shielded));
  return {};
}

PermissionLimit permission_limit_of(const std::vector<std::string>& folders,
                                    const std::vector<std::string>& files) {
  PermissionLimit most;
  for (const std::string& folder : folders) narrow_to(folder, 0700, most.folders);
  for (const std::string& file : files) narrow_to(file, 0600, most.files);
  return most;
}

Status limit_permissions(const Store& store, const std::string& folder,
                         const PermissionLimit& most) {
  return supports_permissions(store) ? limit_permissions_below(folder, most, 0) : Status{};
}

Status limit_file_permissions(const std::string& file, const PermissionLimit& most) {
  return limit_mode(file, most.files);
}

Status set_final_permissions(const Store& store, const std::string& folder,
                             const PermissionLimit& most) {
  if (!supports_permissions(store)) return {};
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0)
    return system_error("cannot look at it", folder, errno);
  const mode_t kept = status.st_mode & 07000;  // keeps setgid: new files get the parent's group
  return change_mode(folder, kept | (0777 & ~mask_of_process() & most.folders));
}

bool points_outside(const std::string& folder, const std::string& relative) {
  struct stat status {};
  const std::string path = folder + "/" + relative;
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return false;
  const auto around = real_path(folder), real = real_path(path);
  if (!around || !real || is_within(*real, *around)) return false;
  const std::string snapshots = parent_of(*around);
  return !snapshots.ends_with("/snapshots") || !is_within(*real, parent_of(snapshots) + "/blobs");
}

}  // namespace shw
