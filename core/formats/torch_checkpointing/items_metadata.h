// metadata.pkl of torch_checkpointing (0.1): plain dicts, lists, tuples, texts and numbers, with
// not one class in it.
//
//   root   = {"metadata": {ITEM: item}, "world_size": int, "version": "2.0"}
//   item   = {"nested_path_to_metadata": {PATH: [group, ...]}, "rank_to_layout_info": {rank:
//   layout}} PATH   = JSON text of keys and indices: '["state",0,"exp_avg"]' group  =
//   {"sharding_metadata": {"type": "DTensorShardingMetadata", "data": {"global_shape",
//             "dtype", "stride", "mesh_spec", "placements"}}, "ranks": (rank, ...)}
//   layout = {"file_path": text, "serialization_format": {"type": text, ...}} | None
//
// Version 1.0 has one dict of paths, the item first in each, and the layouts of all items by rank
// beside it ("rank_to_layout_info_mappings": {rank: {ITEM: layout}}).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/common/side_tensors.h"

namespace shw {

// One description of a tensor, and the ranks that have a part of it.
struct ItemGroup {
  Dtype dtype = Dtype::kUnknown;
  SideSharding sharding;
  std::vector<std::int64_t> ranks;
  bool is_known = true;  // false: a type of another library
};
struct ItemLayout {
  std::string path;
  std::string form;  // "TorchSerialization"
  bool names_class = false;
};
struct SavedItem {
  std::map<std::string, std::vector<ItemGroup>> tensors = {};  // by dotted path
  std::map<std::uint32_t, ItemLayout> layouts = {};            // without those that are None
  std::vector<std::string> twice = {};                         // dotted paths that two paths have
};
struct ItemsMetadata {
  std::uint32_t ranks = 0;
  std::map<std::string, SavedItem> items = {};
  std::vector<std::string> problems = {};  // in words, what contradicts itself
};

inline constexpr const char* kItemsMetadata = "metadata.pkl";

// By first bytes.
bool is_items_metadata(BytesView first);
// kUnsupported: a class, or a version that is not known. kDamaged: no such pickle.
Result<ItemsMetadata> read_items_metadata(const Directory& directory);

// "model_3.pt": the item and the rank.
struct ItemFileName {
  std::string item;
  std::uint32_t rank = 0;
};
std::optional<ItemFileName> parse_item_file(std::string_view name);

}  // namespace shw
