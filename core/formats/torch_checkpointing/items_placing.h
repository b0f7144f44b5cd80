// Which item and which rank's file of a new checkpoint of torch_checkpointing a tensor goes to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

struct PlacedItemTensor {
  std::string item;
  std::string path;  // JSON text of the keys below the item: ["state",0,"exp_avg"]
  std::string key;   // the same joined by dots, as the file has it
  std::uint32_t rank = 0;
};
struct PlacedItems {
  std::vector<PlacedItemTensor> tensors;  // in the order of Outputs
  std::vector<std::string> items;         // sorted
  std::uint32_t ranks = 1;
};
// kUnsupported: two tensors of one key in one item, of which the library would lose one.
Result<PlacedItems> place_items(const Outputs& outputs);

std::string item_file(const std::string& item, std::uint32_t rank);

// metadata.pkl.
std::string items_pickle(const Outputs& outputs, const PlacedItems& placed);

}  // namespace shw
