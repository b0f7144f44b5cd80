// The Store implementation for the local file system.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/base/checked.h"
#include "core/io/list_names.h"
#include "core/io/path_suffix.h"
#include "core/io/path_text.h"
#include "core/io/posix_error.h"
#include "core/io/posix_folder.h"
#include "core/io/publish.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"

namespace shw {
namespace {

class PosixStore final : public Store {
 public:
  bool exists(const std::string& path) const override {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
  }
  bool is_free_for_folder(const std::string& path) const override {
    return !exists(path) || is_replaceable_folder(path);
  }

  Result<std::string> resolved(const std::string& path) const override {
    if (is_remote(path)) return without_trailing_slashes(without_secrets(path));
    auto resolve = [](const std::string& text) {
      return std::unique_ptr<char, decltype(&std::free)>(::realpath(text.c_str(), nullptr),
                                                         &std::free);
    };
    if (auto whole = resolve(path)) return std::string(whole.get());
    if (auto end = parse_computed_suffix(path)) {
      SHW_TRY(end->before, resolved(end->before));
      for (std::string& other : end->others) {
        SHW_TRY(other, resolved(other));
      }
      return to_path(*end);
    }
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

  Result<std::uint64_t> free_bytes(const std::string& path) const override {
    struct statvfs status {};
    if (::statvfs(path.c_str(), &status) != 0) {
      return fail(ErrorKind::kIo,
                  std::string("cannot ask for the free space: ") + std::strerror(errno), {path});
    }
    return checked_mul(std::uint64_t{status.f_bavail}, std::uint64_t{status.f_frsize})
        .value_or(UINT64_MAX);
  }

  bool can_reflink(const std::string& folder, const ByteSource& source) const override {
    return can_reflink_into_posix_folder(folder, source);
  }

  std::vector<std::string> names(const std::string& folder) const override {
    return names_in(folder).value_or(std::vector<std::string>{});
  }

  Result<std::shared_ptr<const Directory>> read_folder(const std::string& path) const override {
    return open_directory(path);
  }

  Result<std::unique_ptr<WritableDirectory>> make_folder(const std::string& path) override {
    if (is_remote(path)) return cannot_write(path);
    // Mode 0700: other users cannot read or add files until it is finished (core/io/permissions.h).
    if (::mkdir(path.c_str(), 0700) != 0)
      return system_error("cannot make the directory", path, errno);
    return open_posix_folder(path);
  }

  Result<std::unique_ptr<WritableDirectory>> edit_folder(const std::string& path) override {
    if (is_remote(path)) return cannot_write(path);
    return open_posix_folder(path);
  }

  Status publish(const std::string& temporary, const std::string& final_path) override {
    return publish_directory(temporary, final_path);
  }

  Status discard(const std::string& path, const std::string& marker) override {
    return discard_directory(path, marker);
  }

 private:
  static tl::unexpected<Error> cannot_write(const std::string& path) {
    return fail(ErrorKind::kUsage, "is on another machine, and results are written to this one",
                {path}, "Give a folder on this machine with --out.");
  }
};

}  // namespace

Store& posix_store() {
  static PosixStore store;
  return store;
}

}  // namespace shw
