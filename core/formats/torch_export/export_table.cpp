#include "core/formats/torch_export/export_table.h"

#include <algorithm>

#include "core/formats/common/codecs.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/zip_check.h"
#include "core/formats/torch_export/export_open.h"

namespace shw {
namespace {

Result<bool> has_export_file(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && entry.path.ends_with(kExportSuffix);
  });
}

FileRole export_file_role(std::string_view file) {
  return file.ends_with(kExportSuffix) ? FileRole::kSingleFile : FileRole::kNothing;
}

}  // namespace

constexpr Format kTorchExportFormat = {
    .name = "torch-export",
    .title = "program of torch.export",
    .codec = &kRawCodec,
    .traits = {.has_one_piece_per_tensor = true},
};

constexpr FormatRow kTorchExportRow = {
    .format = &kTorchExportFormat,
    .sign = kExportSuffix,
    .recognises = has_export_file,
    .open = open_torch_export,
    .named = export_file_role,
    .names_are_common = true,
    .check_file = check_zip_records,
};

}  // namespace shw
