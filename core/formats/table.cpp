#include "core/formats/table.h"

#include <algorithm>
#include <array>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/safetensors/safetensors_formats.h"

namespace shw {

Result<std::span<const Entry>> DirectoryLook::entries() const {
  if (!entries_) {
    SHW_TRY(entries_, directory_.list());
  }
  return std::span<const Entry>(*entries_);
}

Result<Bytes> DirectoryLook::first_bytes(const std::string& path, std::uint64_t count) const {
  if (directory_.stat(path).kind != EntryKind::kFile) return Bytes{};
  SHW_TRY(auto source, directory_.open(path));
  return read_bytes(*source, 0, std::min(count, source->size()));
}

std::span<const FormatRow> formats() {
  // Whoever has an index by a fixed name comes before those that are told by a listing.
  static const std::array kRows = {kMegatronRow, kDcpRow, kDcpRankLocalRow, kSafetensorsRow,
                                   kHfShardedRow};
  return kRows;
}

}  // namespace shw
