// Finds the files of all items and ranks, and reads their tensors' descriptions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/rank_chunks.h"
#include "core/formats/torch_checkpointing/items_metadata.h"

namespace shw {

// The file of an item and rank, and whether metadata.pkl lists the item.
struct SavedFile {
  std::string item;
  std::uint32_t rank = 0;
  std::string path;
  bool is_recorded = false;
  bool is_there = false;
};

struct SavedFiles {
  std::uint32_t ranks = 0;
  std::vector<SavedFile> files = {};      // sorted by item and rank
  std::vector<std::string> extra = {};    // of ranks beyond those of the save
  std::vector<std::string> outside = {};  // recorded paths that leave the folder
};
// Uses metadata, or names if it is null (missing).
SavedFiles find_item_files(std::span<const Entry> entries, const ItemsMetadata* metadata);

// The tensors of one file. `codec`: that of its storages; null for torch.save files.
struct ItemTensors {
  std::vector<TorchFileTensor> tensors = {};
  std::vector<UnreadableTensor> unreadable = {};
  const Codec* codec = nullptr;
};
Result<ItemTensors> read_item_file(const std::shared_ptr<const Directory>& directory,
                                   const std::string& path, PickleFindings& notes);

}  // namespace shw
