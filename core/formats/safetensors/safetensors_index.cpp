#include "core/formats/safetensors/safetensors_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/common/python_json.h"
#include "core/formats/common/top_file.h"

namespace shw {
namespace {

using IndexJson = nlohmann::ordered_json;

Result<IndexJson> read_index_json(const ByteSource& source) {
  auto damaged = [&](const std::string& why) {
    return fail(ErrorKind::kDamaged, "the index " + why, {source.name()});
  };
  if (source.size() > kMaxSafetensorsIndex) return damaged("is too large for an index");
  SHW_TRY(Bytes bytes, read_bytes(source, 0, source.size()));
  const std::string text =
      quote_non_json_numbers({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto keeps = [](int depth, IndexJson::parse_event_t, const IndexJson&) { return depth < 16; };
  IndexJson json = parse_json<IndexJson>(text, keeps).tree;
  if (json.is_discarded() || !json.is_object()) return damaged("is not a JSON object");
  return json;
}

// Renames in the order of the map, so that names can be exchanged.
bool rename_entries(const IndexChange& change, IndexJson& json) {
  auto weight_map = json.find("weight_map");
  if (change.renamed.empty() || weight_map == json.end() || !weight_map->is_object()) return false;
  IndexJson renamed = IndexJson::object();
  auto& entries = renamed.get_ref<IndexJson::object_t&>();
  for (auto& [fqn, file] : weight_map->items()) {
    auto found = change.renamed.find(fqn);
    entries.push_back({found == change.renamed.end() ? fqn : found->second, std::move(file)});
  }
  *weight_map = std::move(renamed);
  return true;
}

bool reassign_index_entries(const IndexChange& change, IndexJson& json) {
  auto weight_map = json.find("weight_map");
  if (weight_map == json.end() || !weight_map->is_object()) return false;
  bool changed = false;
  for (auto& [fqn, file] : weight_map->items()) {
    auto home = change.homes.find(fqn);
    if (home == change.homes.end() || home->second.empty()) continue;
    auto is_named = [&named = file](const std::string& path) { return named == path; };
    if (std::any_of(home->second.begin(), home->second.end(), is_named)) continue;
    file = home->second.front();
    changed = true;
  }
  return changed;
}

void set_total_size(IndexJson& json, std::int64_t bytes) {
  auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object()) return;
  auto number = metadata->find("total_size");
  if (number != metadata->end() && number->is_number_integer()) *number = bytes;
}

bool add_to_total(IndexJson& json, const char* key, std::int64_t by) {
  auto metadata = json.find("metadata");
  if (by == 0 || metadata == json.end() || !metadata->is_object()) return false;
  auto number = metadata->find(key);
  if (number == metadata->end() || !number->is_number_integer()) return false;
  auto moved = checked_add(number->get<std::int64_t>(), by);
  if (!moved || *moved < 0) return false;
  *number = *moved;
  return true;
}

}  // namespace

std::optional<std::string> find_safetensors_index(const Directory& directory) {
  std::string usual(kSafetensorsIndex);
  // Other kinds of entries with this name count as an unreadable index.
  if (directory.stat(usual).kind != EntryKind::kMissing) return usual;
  auto entries = directory.list();
  if (!entries) return std::nullopt;
  std::optional<std::string> found;
  for (const Entry& entry : *entries) {
    bool index = is_top_file(entry) && entry.path.ends_with(".safetensors.index.json");
    if (index && found) return std::nullopt;  // two indices, e.g. of fp16 and fp32: ambiguous
    if (index) found = entry.path;
  }
  return found;
}

std::string single_file_name(const std::string& index) {
  return index.substr(0, index.rfind(".index.json"));
}

Result<std::optional<std::string>> changed_index(const ByteSource& source,
                                                 const IndexChange& change) {
  using Text = std::optional<std::string>;
  bool resized = change.more_bytes != 0 || change.more_elements != 0;
  auto json = read_index_json(source);
  // An unreadable index that needs no change is kept.
  if (!json && !resized && change.renamed.empty()) return Text{};
  if (!json) return tl::unexpected<Error>(std::move(json).error());
  const bool is_renamed = rename_entries(change, *json),
             is_sent = reassign_index_entries(change, *json);
  bool changed = add_to_total(*json, "total_size", change.more_bytes) || is_sent || is_renamed;
  if (is_sent) set_total_size(*json, change.bytes);
  changed = add_to_total(*json, "total_parameters", change.more_elements) || changed;
  return changed ? Text(unquote_non_json_numbers(json->dump(2)) + "\n") : Text{};
}

}  // namespace shw
