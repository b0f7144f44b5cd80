// Every byte of items held against their checksums, for one thread that goes from item to item as
// they lie in their files: a file stays open from the first of its items to the last, and small
// ones are read together.
#pragma once

#include <memory>

#include "core/formats/items.h"

namespace shw {

class ItemFiles;

class ItemChecks {
 public:
  explicit ItemChecks(const Checkpoint& checkpoint);
  ~ItemChecks();
  // What check_item_data() says.
  Result<DataCheck> check(ChunkId chunk, Progress* progress, const ItemHeader* header,
                          ItemNumbers* numbers);

 private:
  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
