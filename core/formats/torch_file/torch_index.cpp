#include "core/formats/torch_file/torch_index.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/common/index_checks.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/state_dict.h"

namespace shw {
namespace {

std::string find_torch_index_name(const std::vector<Entry>& entries) {
  std::string found;
  bool are_several = false;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry) || !entry.path.ends_with(kTorchIndexSuffix)) continue;
    if (entry.path == kTorchIndexNames.usual) return entry.path;
    are_several = !found.empty();
    found = entry.path;
  }
  return are_several ? std::string() : found;
}

TorchParts parts_by_name(std::span<const Entry> entries) {
  constexpr std::string_view kSuffix = ".bin", kUsual = "pytorch_model-";
  std::map<std::string, std::map<std::uint32_t, std::string>> families;
  std::map<std::string, std::vector<PartName>> parts;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    auto part = parse_part_name(entry.path, kSuffix);
    if (!part || part->count == 1) continue;
    families[part->before].emplace(part->number, entry.path);
    parts[part->before].push_back(std::move(*part));
  }
  auto chosen = families.find(std::string(kUsual));
  if (chosen == families.end() && families.size() == 1) chosen = families.begin();
  if (chosen == families.end()) return {};
  TorchParts found;
  for (const auto& [number, path] : chosen->second) found.files.push_back(path);
  found.missing = parts_not_among(parts.at(chosen->first), kSuffix);
  return found;
}

// The names in a file as an index uses them: entries, and keys of the top-level dict.
std::optional<IndexedFile> names_in(const Directory& directory, const std::string& path) {
  auto state = open_state(directory, path);
  auto entries = state ? entries_of(*state, path)
                       : Result<std::vector<StateEntry>>(tl::unexpected(state.error()));
  if (!entries) return std::nullopt;
  std::set<std::string> names;
  for (StateEntry& entry : *entries) {
    if (entry.path.size() > 1) {
      if (const auto* top = std::get_if<std::string>(&entry.path.front())) names.insert(*top);
    }
    names.insert(std::move(entry.fqn));
  }
  IndexedFile file{path, {}};
  for (const std::string& name : names) file.tensors.emplace_back(name, 0);
  return file;
}

// If files of the index are missing, chooses other files that contain all its tensors.
void choose_files_covering_index(const Directory& directory, const std::vector<std::string>& all,
                                 TorchIndex& index) {
  std::vector<std::string> not_there = missing_index_files(directory, index.map);
  if (not_there.empty()) return;
  std::vector<IndexedFile> held;
  for (const std::string& path : all) {
    if (!path.ends_with(".bin") || trainer_file(path) != TrainerFile::kNone) continue;
    if (auto names = names_in(directory, path)) held.push_back(std::move(*names));
  }
  const std::string single = index.path.substr(0, index.path.rfind(".index.json"));
  auto holders = files_containing(held, index.map, single);
  if (holders.empty()) return;
  index.files = std::move(holders);
  index.not_there = std::move(not_there);
}

}  // namespace

Result<std::optional<TorchIndex>> find_torch_index(const Directory& directory) {
  if (is_single_file_directory(directory)) return std::nullopt;
  SHW_TRY(auto entries, directory.list());
  TorchIndex index{find_torch_index_name(entries), {}};
  if (index.path.empty()) return std::nullopt;
  auto map = read_weight_map(directory, index.path, index.finding, &index.total);
  if (!map) {
    TorchParts parts = parts_by_name(entries);
    index.files = std::move(parts.files);
    index.missing = std::move(parts.missing);
    return index;
  }
  index.map = std::move(*map);
  std::vector<std::string> all;
  for (const Entry& entry : entries) {
    if (is_top_file(entry)) all.push_back(entry.path);
  }
  index.files = files_of_index(all, index.map);
  choose_files_covering_index(directory, all, index);
  return index;
}

TorchParts torch_parts_among(std::span<const Entry> entries) {
  const bool has_index = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && entry.path.ends_with(kTorchIndexSuffix);
  });
  return has_index ? TorchParts{} : parts_by_name(entries);
}

}  // namespace shw
