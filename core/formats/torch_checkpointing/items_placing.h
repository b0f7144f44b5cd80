// Chooses the item and the rank file of each tensor in a new torch_checkpointing checkpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

struct PlacedItemTensor {
  std::string item;
  std::string path;  // JSON text of the keys below the item: ["state",0,"exp_avg"]
  std::string key;   // the keys joined by dots, as in the file
  std::uint32_t rank = 0;
};
struct PlacedItems {
  std::vector<PlacedItemTensor> tensors;  // in the order of Outputs
  std::vector<std::string> items;         // sorted
  std::uint32_t ranks = 1;
};
// kUnsupported if two tensors have one key in an item, because the library would lose one.
Result<PlacedItems> place_items(const Outputs& outputs);

std::string item_file(const std::string& item, std::uint32_t rank);

// Contents of metadata.pkl.
std::string items_pickle(const Outputs& outputs, const PlacedItems& placed);

}  // namespace shw
