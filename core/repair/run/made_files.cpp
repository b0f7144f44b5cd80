#include "core/repair/run/made_files.h"

#include <algorithm>
#include <utility>

#include "core/io/read_whole.h"

namespace shw {

void replace_copied_file(const std::string& path, Bytes bytes, FolderRun& run) {
  const auto file = static_cast<std::uint32_t>(run.laid_out.files.size());
  run.laid_out.files.push_back({path, bytes.size(), true});
  run.laid_out.before.push_back({file, 0, std::move(bytes)});
}

Status write_generated_files(const Checkpoint& source, FolderRun& run) {
  const Directory& directory = *source.directory();
  const auto made =
      std::stable_partition(run.copied.begin(), run.copied.end(),
                            [&](const Entry& entry) { return !directory.is_made(entry.path); });
  for (auto entry = made; entry != run.copied.end(); ++entry) {
    SHW_TRY(auto file, directory.open(entry->path));
    SHW_TRY(Bytes bytes, read_whole(*file));
    replace_copied_file(entry->path, std::move(bytes), run);
  }
  run.copied.erase(made, run.copied.end());
  return {};
}

}  // namespace shw
