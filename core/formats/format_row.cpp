#include "core/formats/format_row.h"

#include <algorithm>

namespace shw {

Result<std::span<const Entry>> DirectoryContents::entries() const {
  if (!entries_) {
    SHW_TRY(entries_, directory_.list());
  }
  return std::span<const Entry>(*entries_);
}

Result<Bytes> DirectoryContents::first_bytes(const std::string& path, std::uint64_t count) const {
  if (directory_.stat(path).kind != EntryKind::kFile) return Bytes{};
  SHW_TRY(auto source, directory_.open(path));
  return read_bytes(*source, 0, std::min(count, source->size()));
}

}  // namespace shw
