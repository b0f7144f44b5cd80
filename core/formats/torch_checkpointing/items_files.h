// The files of all items and ranks, read as far as their tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/rank_chunks.h"
#include "core/formats/torch_checkpointing/items_metadata.h"

namespace shw {

// Where the file of an item and rank is, and whether metadata.pkl has the item.
struct SavedFile {
  std::string item;
  std::uint32_t rank = 0;
  std::string path;
  bool is_recorded = false;
  bool is_there = false;
};

struct SavedFiles {
  std::uint32_t ranks = 0;
  std::vector<SavedFile> files = {};      // by item and rank
  std::vector<std::string> extra = {};    // of ranks that the save did not have
  std::vector<std::string> outside = {};  // paths that lead out of the folder
};
// By metadata, and by names where there is none; `metadata` null: it is not there.
SavedFiles find_item_files(std::span<const Entry> entries, const ItemsMetadata* metadata);

// The tensors of one file, whichever form it has. `codec`: of its storages, null for torch.save's.
struct ItemTensors {
  std::vector<SideTensor> tensors = {};
  std::vector<SideUnreadable> unreadable = {};
  const Codec* codec = nullptr;
};
Result<ItemTensors> read_item_file(const std::shared_ptr<const Directory>& directory,
                                   const std::string& path, PickleNotes& notes);

}  // namespace shw
