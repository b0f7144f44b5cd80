#include "core/formats/hdf5/hdf5_table.h"

#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/top_file.h"
#include "core/formats/hdf5/hdf5_formats.h"
#include "core/formats/hdf5/hdf5_messages.h"
#include "core/formats/hdf5/hdf5_open.h"
#include "core/formats/hdf5/hdf5_shards.h"

namespace shw {
namespace {

// True for an index of Keras, a zip with the name of Keras' archive, or an HDF5 file with a usual
// name; if it is the only file, with any name.
Result<bool> has_hdf5_files(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    if (entry.path.ends_with(kKerasIndexSuffix)) return true;
    const bool is_archive = entry.path.ends_with(kKerasArchiveSuffix);
    if (!is_archive && !has_hdf5_name(entry.path) && entries.size() != 1) continue;
    SHW_TRY(Bytes bytes, look.first_bytes(entry.path, 8));
    if (is_archive && bytes.size() == 8 && load_little<std::uint32_t>(bytes) == kZipMagic)
      return true;
    if (is_hdf5(bytes)) return true;
  }
  return false;
}

FileRole hdf5_file_role(std::string_view file) {
  if (file.ends_with(kKerasIndexSuffix)) return FileRole::kCheckpoint;
  const bool is_one = has_hdf5_name(file) || file.ends_with(kKerasArchiveSuffix);
  return is_one ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

constexpr FormatRow kHdf5Row = {
    .format = &kHdf5Format,
    .sign = ".h5",
    .recognises = has_hdf5_files,
    .open = open_hdf5,
    .named = hdf5_file_role,
    .names_are_common = true,
    .check_file = check_keras_archive,
};

}  // namespace shw
