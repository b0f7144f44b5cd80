// Detects and opens the two formats. File names alone identify them, because no other program uses
// these names: pickles are read only when a checkpoint is opened.
#include "core/formats/deepspeed/deepspeed_table.h"

#include <algorithm>

#include "core/formats/common/top_file.h"
#include "core/formats/deepspeed/deepspeed_formats.h"
#include "core/formats/deepspeed/universal_open.h"
#include "core/formats/deepspeed/zero_names.h"
#include "core/formats/deepspeed/zero_open.h"

namespace shw {
namespace {

Result<bool> recognises_universal(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return is_universal(entries);
}

Result<bool> recognises_zero(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && parse_zero_name(entry.path).has_value();
  });
}

FileRole zero_file_role(std::string_view file) {
  auto name = parse_zero_name(file);
  if (!name) return FileRole::kNothing;
  const bool is_model =
      name->kind == ZeroFileKind::kModel || name->kind == ZeroFileKind::kRankModel;
  return is_model ? FileRole::kSingleFile : FileRole::kPart;
}

}  // namespace

constexpr FormatRow kUniversalRow = {
    .format = &kUniversalFormat,
    .sign = "zero/NAME/fp32.pt",
    .recognises = recognises_universal,
    .open = open_universal,
};
constexpr FormatRow kZeroRow = {
    .format = &kZeroFormat,
    .sign = "optim_states.pt",
    .recognises = recognises_zero,
    .open = open_zero,
    .named = zero_file_role,
};

}  // namespace shw
