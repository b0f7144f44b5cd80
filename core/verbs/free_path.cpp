#include "core/verbs/free_path.h"

#include <fmt/core.h>

#include "core/io/path_text.h"
#include "core/io/remote/remote_path.h"
#include "core/verbs/plan_file.h"

namespace shw::verbs {
namespace {

constexpr int kMaxNames = 10'000;
constexpr std::size_t kMaxLetters = 100;

Result<std::string> free_name(const Store& store, const std::string& folder,
                              const std::string& stem, const std::string& ending) {
  for (int n = 1; n <= kMaxNames; ++n) {
    std::string path = fmt::format("{}/{}{}{}", folder == "/" ? "" : folder, stem,
                                   n == 1 ? "" : fmt::format("-{}", n), ending);
    if (!store.exists(path)) return path;
  }
  return fail(ErrorKind::kUsage, "ten thousand files with this name already exist", {folder});
}

// The folder and the name without ending of a file about the checkpoint. Next to a checkpoint of
// another machine nothing is written: its files go into the working folder.
struct DefaultPlace {
  std::string folder, stem;
};
Result<DefaultPlace> default_place(const Store& store, const std::string& checkpoint) {
  if (!is_remote(checkpoint)) {
    SHW_TRY(std::string path, store.resolved(checkpoint));
    return DefaultPlace{parent_of(path), path.substr(path.rfind('/') + 1)};
  }
  SHW_TRY(const RemotePlace place, parse_remote(checkpoint));
  SHW_TRY(std::string folder, store.resolved("."));
  // Where the desktop was started from a menu.
  if (folder == "/") folder = expanded_path("~");
  const std::string below = place.path.empty() ? place.host : place.path;
  return DefaultPlace{folder, file_name_of(below.substr(below.rfind('/') + 1))};
}

}  // namespace

Result<std::string> free_path(const Store& store, const PlaceRequest& asked) {
  SHW_TRY(DefaultPlace place, default_place(store, asked.checkpoint));
  std::string& stem = place.stem;
  if (stem.empty()) stem = "checkpoint";
  stem += "-" + asked.name;
  if (asked.path.empty()) return free_name(store, place.folder, stem, asked.ending);
  std::string path = without_trailing_slashes(expanded_path(asked.path));
  if (!store.exists(path)) return path;
  if (store.read_folder(path)) return free_name(store, path, stem, asked.ending);
  return fail(ErrorKind::kUsage, "a file with this name already exists and is not overwritten",
              {path}, "Choose another file name, or a folder, in which a free name is chosen.");
}

std::string file_name_of(std::string_view fqn) {
  std::string name;
  for (char c : fqn.substr(0, kMaxLetters)) {
    const bool is_kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
    name += is_kept ? c : '_';
  }
  return name;
}

}  // namespace shw::verbs
