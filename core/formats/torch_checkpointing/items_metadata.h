// metadata.pkl of torch_checkpointing (0.1): plain dicts, lists, tuples, texts and numbers, without
// any class.
//
//   root   = {"metadata": {ITEM: item}, "world_size": int, "version": "2.0"}
//   item   = {"nested_path_to_metadata": {PATH: [group, ...]}, "rank_to_layout_info": {rank:
//   layout}} PATH   = JSON text of keys and indices: '["state",0,"exp_avg"]' group  =
//   {"sharding_metadata": {"type": "DTensorShardingMetadata", "data": {"global_shape",
//             "dtype", "stride", "mesh_spec", "placements"}}, "ranks": (rank, ...)}
//   layout = {"file_path": text, "serialization_format": {"type": text, ...}} | None
//
// Version 1.0 has a single dict of paths, with the item as first key of each, and next to it the
// layouts of all items by rank ("rank_to_layout_info_mappings": {rank: {ITEM: layout}}).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/common/torch_file_tensors.h"

namespace shw {

// Description of a tensor, and the ranks that hold parts with this description.
struct ItemGroup {
  Dtype dtype = Dtype::kUnknown;
  DTensorSharding sharding;
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
  std::map<std::uint32_t, ItemLayout> layouts = {};            // without ranks whose layout is None
  std::vector<std::string> twice = {};                         // dotted form of several paths
};
struct ItemsMetadata {
  std::uint32_t ranks = 0;
  std::map<std::string, SavedItem> items = {};
  std::vector<std::string> problems = {};  // contradictions, as texts
};

inline constexpr const char* kItemsMetadata = "metadata.pkl";

// Recognises the file by its first bytes.
bool is_items_metadata(BytesView first);
// kUnsupported: a class, or an unknown version. kDamaged: not such a pickle.
Result<ItemsMetadata> read_items_metadata(const Directory& directory);

// Item and rank in "model_3.pt".
struct ItemFileName {
  std::string item;
  std::uint32_t rank = 0;
};
std::optional<ItemFileName> parse_item_file(std::string_view name);

}  // namespace shw
