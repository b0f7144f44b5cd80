#include "core/verbs/user_files.h"

#include <fmt/core.h>

#include "core/io/path_text.h"
#include "core/io/source.h"

namespace shw::verbs {

std::string user_file_path(const char* xdg, const char* home, std::string_view otherwise,
                           std::string_view name) {
  // The XDG specification says to ignore relative paths.
  if (xdg != nullptr && xdg[0] == '/') return fmt::format("{}/shardwright/{}", xdg, name);
  if (home == nullptr || home[0] != '/') return {};
  return fmt::format("{}/{}/shardwright/{}", home, otherwise, name);
}

Result<std::string> read_user_file(const std::string& file) {
  SHW_TRY(auto source, open_file(file, file));
  if (source->size() > kMaxOwnBytes)
    return fail(ErrorKind::kDamaged, fmt::format("{} bytes are too many", source->size()), {file});
  SHW_TRY(auto bytes, read_bytes(*source, 0, source->size()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status write_user_file(Store& store, const std::string& file, std::string_view text) {
  // Starts at the nearest existing folder; missing ones are created.
  std::string base = parent_of(file);
  while (!store.exists(base) && parent_of(base) != base) base = parent_of(base);
  std::string name = file.substr(base == "/" ? 1 : base.size() + 1);
  SHW_TRY(auto folder, store.edit_folder(base));
  std::string half = name + ".new";
  if (store.exists(file + ".new")) SHW_CHECK(folder->remove(half));
  SHW_CHECK(write_text(*folder, half, text));
  return folder->rename(half, name);
}

}  // namespace shw::verbs
