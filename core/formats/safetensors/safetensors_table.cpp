#include "core/formats/safetensors/safetensors_table.h"

#include <algorithm>

#include "core/formats/safetensors/safetensors.h"
#include "core/formats/safetensors/safetensors_formats.h"

namespace shw {
namespace {

Result<bool> has_safetensors(const DirectoryLook& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path.ends_with(kSafetensorsSuffix) && entry.path.find('/') == std::string::npos;
  });
}

NamedFile named_safetensors(std::string_view file) {
  return file.ends_with(kSafetensorsSuffix) ? NamedFile::kAlone : NamedFile::kNothing;
}

}  // namespace

constexpr FormatRow kSafetensorsRow = {
    &kSafetensorsFormat, kSafetensorsSuffix, has_safetensors, open_safetensors, named_safetensors,
};
// Told by what the headers say, once they are read.
constexpr FormatRow kHfShardedRow = {&kHfShardedFormat, kSafetensorsSuffix};

}  // namespace shw
