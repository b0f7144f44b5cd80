#include "core/formats/orbax/orbax_table.h"

#include <algorithm>

#include "core/formats/common/codecs.h"
#include "core/formats/orbax/ocdbt.h"
#include "core/formats/orbax/orbax_metadata.h"
#include "core/formats/orbax/orbax_open.h"
#include "core/formats/orbax/zarr_array.h"

namespace shw {
namespace {

// True if there is Orbax metadata, or an array in the folder or a direct subfolder. A folder of
// steps has arrays further down and is not a checkpoint.
Result<bool> is_orbax(const DirectoryContents& look) {
  for (std::string_view file : {kOrbaxCheckpointMetadata, kOrbaxMetadata, kOcdbtManifest}) {
    if (look.entry(file).kind == EntryKind::kFile) return true;
  }
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    const std::string_view path = entry.path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const bool is_part = name == kOcdbtManifest && path.starts_with(kOcdbtOfProcess);
    return std::count(path.begin(), path.end(), '/') <= 1 &&
           (name == kZarrTwo || name == kZarrThree || is_part);
  });
}

FileRole orbax_file_role(std::string_view file) {
  const bool is_one =
      file == kOrbaxCheckpointMetadata || file == kOrbaxMetadata || file == kOcdbtManifest;
  return is_one ? FileRole::kCheckpoint : FileRole::kNothing;
}

std::optional<Error> unfinished_at_top(std::span<const Entry> entries) {
  return unfinished_orbax(entries, "");
}

}  // namespace

constexpr Format kOrbaxFormat = {
    .name = "orbax",
    .title = "Orbax (zarr arrays)",
    .codec = &kRawCodec,
};

constexpr FormatRow kOrbaxRow = {
    .format = &kOrbaxFormat,
    .sign = "_METADATA",
    .recognises = is_orbax,
    .open = open_orbax,
    .named = orbax_file_role,
    .unfinished = unfinished_at_top,
};

}  // namespace shw
