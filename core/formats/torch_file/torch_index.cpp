#include "core/formats/torch_file/torch_index.h"

#include "core/formats/common/index_checks.h"
#include "core/formats/one_file.h"

namespace shw {
namespace {

bool is_at_top(const Entry& entry) {
  return entry.kind == EntryKind::kFile && entry.path.find('/') == std::string::npos;
}

std::string index_among(const std::vector<Entry>& entries) {
  std::string found;
  bool are_several = false;
  for (const Entry& entry : entries) {
    if (!is_at_top(entry) || !entry.path.ends_with(".bin.index.json")) continue;
    if (entry.path == kTorchIndexNames.usual) return entry.path;
    are_several = !found.empty();
    found = entry.path;
  }
  return are_several ? std::string() : found;
}

}  // namespace

Result<std::optional<TorchIndex>> find_torch_index(const Directory& directory) {
  if (is_one_file(directory)) return std::nullopt;
  SHW_TRY(auto entries, directory.list());
  TorchIndex index{index_among(entries), {}};
  if (index.path.empty()) return std::nullopt;
  auto map = read_weight_map(directory, index.path, index.finding, &index.total);
  if (!map) return std::nullopt;
  index.map = std::move(*map);
  std::vector<std::string> all;
  for (const Entry& entry : entries) {
    if (is_at_top(entry)) all.push_back(entry.path);
  }
  index.files = named_files(all, index.map);
  return index;
}

}  // namespace shw
