#include "core/formats/safetensors/safetensors_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/common/safetensors_header.h"
#include "core/formats/common/top_file.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/formats/safetensors/safetensors_metadata.h"

namespace shw {
namespace {

Result<bool> has_safetensors(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.path.ends_with(kSafetensorsSuffix) && is_at_top(entry.path);
  });
}

FileRole safetensors_file_role(std::string_view file) {
  if (file.ends_with(".safetensors.index.json")) return FileRole::kCheckpoint;
  return file.ends_with(kSafetensorsSuffix) ? FileRole::kSingleFile : FileRole::kNothing;
}

std::string metadata_name(const std::string& key) {
  return key + " of " + std::string(kSafetensorsMetadata);
}

// Entries of headers' __metadata__, as "modelspec.title of __metadata__", except those of the
// format itself.
std::vector<std::string> other_metadata(const Checkpoint& checkpoint) {
  std::set<std::string> names;
  for_each_metadata_entry(checkpoint,
                          [&](const std::string&, const std::string& key, const std::string&) {
                            if (!is_metadata_of_format(key)) names.insert(metadata_name(key));
                          });
  return {names.begin(), names.end()};
}

std::vector<NeededAddition> needed_metadata(const Checkpoint& checkpoint) {
  std::map<std::string, NeededAddition> needed;
  for_each_metadata_entry(checkpoint, [&](const std::string&, const std::string& key,
                                          const std::string& text) {
    auto parts = packed_tensor_parts(checkpoint, key, text);
    if (key == kLoraMetadata)
      needed.emplace(key, NeededAddition{metadata_name(key), "diffusers reads lora_alpha from it"});
    else if (!parts.empty())
      needed.emplace(key,
                     NeededAddition{metadata_name(key), "torchao needs it to unpack the weights",
                                    std::move(parts)});
  });
  std::vector<NeededAddition> all;
  for (auto& [key, one] : needed) all.push_back(std::move(one));
  return all;
}

}  // namespace

constexpr FormatRow kSafetensorsRow = {
    .format = &kSafetensorsFormat,
    .sign = kSafetensorsSuffix,
    .recognises = has_safetensors,
    .open = open_safetensors,
    .named = safetensors_file_role,
    .noted_additions = other_metadata,
    .needed_additions = needed_metadata,
    .tensor_classes = classes_in_metadata,
};
// Detected after headers are read.
constexpr FormatRow kHfShardedRow = {
    .format = &kHfShardedFormat,
    .sign = kSafetensorsSuffix,
    .noted_additions = other_metadata,
    .needed_additions = needed_metadata,
    .tensor_classes = classes_in_metadata,
};

}  // namespace shw
