#include "core/formats/safetensors/safetensors_table.h"

#include <algorithm>
#include <set>

#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/top_file.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/safetensors/safetensors_formats.h"

namespace shw {
namespace {

Result<bool> has_safetensors(const DirectoryLook& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path.ends_with(kSafetensorsSuffix) && is_at_top(entry.path);
  });
}

NamedFile named_safetensors(std::string_view file) {
  if (file.ends_with(".safetensors.index.json")) return NamedFile::kCheckpoint;
  return file.ends_with(kSafetensorsSuffix) ? NamedFile::kAlone : NamedFile::kNothing;
}

// Entries of headers' __metadata__, as "modelspec.title of __metadata__", except those of the
// format itself.
std::vector<std::string> metadata_beside(const Checkpoint& checkpoint) {
  std::set<std::string> names;
  if (checkpoint.directory() == nullptr) return {};
  for (const FileRow& file : checkpoint.files()) {
    auto source = checkpoint.directory()->open(file.path);
    if (!source || !file.path.ends_with(kSafetensorsSuffix)) continue;
    auto header = read_safetensors_header(**source);
    if (!header) continue;
    for (const auto& [key, text] : header->metadata) {
      const bool is_of_format =
          key == "format" || key == kFilledAttribute || key.starts_with("DCP_");
      if (!is_of_format) names.insert(key + " of " + std::string(kSafetensorsMetadata));
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

constexpr FormatRow kSafetensorsRow = {
    .format = &kSafetensorsFormat,
    .sign = kSafetensorsSuffix,
    .recognises = has_safetensors,
    .open = open_safetensors,
    .named = named_safetensors,
    .noted_additions = metadata_beside,
};
// Detected after headers are read.
constexpr FormatRow kHfShardedRow = {
    .format = &kHfShardedFormat,
    .sign = kSafetensorsSuffix,
    .noted_additions = metadata_beside,
};

}  // namespace shw
