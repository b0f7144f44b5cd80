#include "core/formats/safetensors/safetensors_metadata.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/safetensors_header.h"
#include "core/formats/safetensors/safetensors_names.h"

namespace shw {
namespace {

constexpr const char* kPartNames = "_tensor_data_names";  // key of torchao
constexpr std::uint64_t kMaxPackedText = std::uint64_t{1} << 20;

// True if the text contains a tensor's name in double quotes, as JSON does.
bool contains_quoted_tensor_name(const Checkpoint& checkpoint, std::string_view text) {
  for (std::size_t at = text.find('"'); at != std::string_view::npos;) {
    const std::size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos) return false;
    if (checkpoint.find(text.substr(at + 1, end - at - 1))) return true;
    at = end;
  }
  return false;
}

std::optional<Extents> sizes_in_json(const nlohmann::json& sizes) {
  if (!sizes.is_array() || sizes.size() > kMaxDims) return std::nullopt;
  Extents shape;
  for (const auto& size : sizes) {
    if (!size.is_number_integer()) return std::nullopt;
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

// The names of the tensors of parameter `key` that torchao's entry lists: "a._weight_qdata".
std::vector<std::string> listed_parts(const std::string& key, const nlohmann::json& entry) {
  std::vector<std::string> parts;
  const std::string before = std::string(key).insert(key.rfind('.') + 1, 1, '_') + "_";
  const auto names = entry.is_object() ? entry.find(kPartNames) : entry.end();
  if (names == entry.end() || !names->is_array()) return parts;
  for (const auto& one : *names)
    if (one.is_string()) parts.push_back(before + one.get<std::string>());
  return parts;
}

// {"_type": "Int4Tensor", "_data": {"shape": [8, 16], ...}, "_tensor_data_names": [...]}
std::optional<TensorClass> class_in_entry(const std::string& key, const std::string& text) {
  if (text.size() > kMaxPackedText || text.find(kPartNames) == std::string::npos)
    return std::nullopt;
  const auto json = parse_json<nlohmann::json>(text).tree;
  if (!json.is_object() || !json.contains("_type") || !json["_type"].is_string())
    return std::nullopt;
  TensorClass found{key, json["_type"].get<std::string>(), std::nullopt, listed_parts(key, json)};
  const auto data = json.find("_data");
  if (data == json.end() || !data->is_object()) return found;
  if (const auto sizes = data->find("shape"); sizes != data->end())
    found.shape = sizes_in_json(*sizes);
  if (const auto block = data->find("block_size"); block != data->end())
    found.block = sizes_in_json(block->is_array() ? *block : nlohmann::json::array({*block}));
  return found;
}

}  // namespace

void for_each_metadata_entry(
    const Checkpoint& checkpoint,
    const std::function<void(const std::string& file, const std::string& key,
                             const std::string& text)>& take) {
  if (checkpoint.directory() == nullptr) return;
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced || !file.safe || !file.path.ends_with(kSafetensorsSuffix)) continue;
    auto source = checkpoint.directory()->open(file.path);
    if (!source) continue;
    auto header = read_safetensors_header(**source);
    if (!header) continue;
    for (const auto& [key, text] : header->metadata) take(file.path, key, text);
  }
}

bool is_metadata_of_format(std::string_view key) {
  return key == "format" || key == kFilledAttribute || key.starts_with("DCP_");
}

std::vector<std::string> packed_tensor_parts(const Checkpoint& checkpoint, const std::string& key,
                                             const std::string& text) {
  if (text.size() > kMaxPackedText || text.find(kPartNames) == std::string::npos) return {};
  auto parts = listed_parts(key, parse_json<nlohmann::json>(text).tree);
  std::erase_if(parts, [&](const std::string& name) { return !checkpoint.find(name); });
  return parts;
}

std::vector<TensorClass> classes_in_metadata(const Checkpoint& checkpoint) {
  std::vector<TensorClass> classes;
  for_each_metadata_entry(checkpoint,
                          [&](const std::string&, const std::string& key, const std::string& text) {
                            if (auto found = class_in_entry(key, text))
                              classes.push_back(std::move(*found));
                          });
  return classes;
}

bool has_stale_packed_metadata(const Checkpoint& checkpoint) {
  bool is_stale = false;
  for_each_metadata_entry(
      checkpoint, [&](const std::string&, const std::string& key, const std::string& text) {
        is_stale = is_stale || (text.find(kPartNames) != std::string::npos &&
                                packed_tensor_parts(checkpoint, key, text).empty());
      });
  return is_stale;
}

bool is_tensor_specific_metadata(const Checkpoint& checkpoint, const std::string& key,
                                 const std::string& text) {
  // Keys of kohya's scripts and of ModelSpec.
  constexpr auto kHashes = std::to_array<std::string_view>(
      {"sshs_model_hash", "sshs_legacy_hash", "modelspec.hash_sha256"});
  return std::find(kHashes.begin(), kHashes.end(), key) != kHashes.end() || key == "tensor_names" ||
         checkpoint.find(key).has_value() || text.find(kPartNames) != std::string::npos ||
         contains_quoted_tensor_name(checkpoint, text);
}

}  // namespace shw
