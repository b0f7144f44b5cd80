#include "core/formats/torch_checkpointing/items_files.h"

#include <algorithm>

#include "core/formats/common/top_file.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/open_nested.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

using FilesByItem = std::map<std::string, std::map<std::uint32_t, std::string>>;

FilesByItem files_by_name(std::span<const Entry> entries) {
  FilesByItem found;
  for (const Entry& entry : entries) {
    auto name = is_top_file(entry) ? parse_item_file(entry.path) : std::nullopt;
    if (name) found[name->item].emplace(name->rank, entry.path);
  }
  return found;
}

// Adds the files of one item, from its layouts or from the library's usual names.
void add_item(const std::string& item, const SavedItem* saved,
              const std::map<std::uint32_t, std::string>& named, const std::set<std::string>& all,
              SavedFiles& out) {
  for (std::uint32_t rank = 0; rank < out.ranks; ++rank) {
    SavedFile file{item, rank, item + "_" + std::to_string(rank) + ".pt", saved != nullptr, false};
    if (auto own = named.find(rank); own != named.end()) file.path = own->second;
    if (saved != nullptr) {
      auto layout = saved->layouts.find(rank);
      if (layout != saved->layouts.end()) file.path = layout->second.path;
    }
    if (!is_safe_relative_path(file.path)) {
      out.outside.push_back(file.path);
      continue;
    }
    file.is_there = all.contains(file.path);
    // An item without a resharder need not exist on every rank.
    if (file.is_there || saved != nullptr) out.files.push_back(std::move(file));
  }
}

// Files of safetensors contain only whole tensors.
Result<ItemTensors> read_safetensors_item(const std::shared_ptr<const Directory>& directory,
                                          const std::string& path, PickleFindings& notes) {
  SHW_TRY(auto opened, open_nested(directory, path));
  const Checkpoint& checkpoint = *opened;
  for (const Finding& finding : checkpoint.opening_findings()) notes.findings.push_back(finding);
  ItemTensors out;
  for (TensorId tensor : checkpoint.tensors()) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      const auto item = checkpoint.item(chunk);
      if (!item) continue;
      TorchFileTensor one;
      one.path.emplace_back(std::string(checkpoint.fqn(tensor)));
      one.dtype = checkpoint.dtype(tensor);
      const auto shape = checkpoint.shape(tensor);
      one.sizes.assign(shape.begin(), shape.end());
      one.strides = row_major_strides(one.sizes);
      one.payload_offset = static_cast<std::uint64_t>(item->offset);
      one.payload_length = static_cast<std::uint64_t>(item->length);
      out.codec = &checkpoint.codec(chunk);
      out.tensors.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace

SavedFiles find_item_files(std::span<const Entry> entries, const ItemsMetadata* metadata) {
  SavedFiles out;
  const FilesByItem named = files_by_name(entries);
  std::set<std::string> all;
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kFile) all.insert(entry.path);
  }
  if (metadata != nullptr) {
    out.ranks = metadata->ranks;
  } else {
    for (const auto& [item, files] : named)
      out.ranks = std::max(out.ranks, files.rbegin()->first + 1);
  }
  // Limits the number of ranks to a few times the number of existing files.
  out.ranks = std::min<std::uint32_t>(
      out.ranks,
      static_cast<std::uint32_t>(64 * std::min<std::size_t>(entries.size(), 1 << 14) + 1024));
  std::set<std::string> items;
  for (const auto& [item, files] : named) items.insert(item);
  if (metadata != nullptr) {
    for (const auto& [item, saved] : metadata->items) items.insert(item);
  }
  for (const std::string& item : items) {
    const SavedItem* saved = nullptr;
    if (metadata != nullptr) {
      auto known = metadata->items.find(item);
      if (known != metadata->items.end()) saved = &known->second;
    }
    auto own = named.find(item);
    static const std::map<std::uint32_t, std::string> kNone;
    const auto& files = own == named.end() ? kNone : own->second;
    add_item(item, saved, files, all, out);
    for (const auto& [rank, path] : files) {
      if (rank >= out.ranks) out.extra.push_back(path);
    }
  }
  return out;
}

Result<ItemTensors> read_item_file(const std::shared_ptr<const Directory>& directory,
                                   const std::string& path, PickleFindings& notes) {
  if (path.ends_with(".safetensors")) return read_safetensors_item(directory, path, notes);
  SHW_TRY(SideFile file, read_torch_file_with_findings(*directory, path, notes));
  return ItemTensors{std::move(file.tensors), std::move(file.unreadable), nullptr};
}

}  // namespace shw
