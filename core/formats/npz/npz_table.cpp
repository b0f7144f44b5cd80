#include "core/formats/npz/npz_table.h"

#include <algorithm>

#include "core/formats/common/codecs.h"
#include "core/formats/common/top_file.h"
#include "core/formats/npz/npz_open.h"

namespace shw {
namespace {

Result<bool> has_npz_files(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && is_numpy_file(entry.path);
  });
}

FileRole npz_file_role(std::string_view file) {
  return is_numpy_file(file) ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

constexpr Format kNpzFormat = {
    .name = "npz",
    .title = "NumPy arrays",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

// Names are common, because training saves other arrays too: indices of data, word embeddings.
constexpr FormatRow kNpzRow = {
    .format = &kNpzFormat,
    .sign = kNpzSuffix,
    .recognises = has_npz_files,
    .open = open_npz,
    .named = npz_file_role,
    .names_are_common = true,
    .check_file = check_npz,
};

}  // namespace shw
