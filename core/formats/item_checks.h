// Verifies the checksums of many items in file order on one
// thread: files stay open between items, and small items are read
// together.
#pragma once

#include <memory>

#include "core/formats/items.h"

namespace shw {

class ItemFiles;

class ItemChecks {
 public:
  explicit ItemChecks(const Checkpoint& checkpoint);
  ~ItemChecks();
  // Same result as check_item_data().
  Result<DataCheck> check(ChunkId chunk, Progress* progress, const ItemHeader* header,
                          ItemNumbers* numbers);

 private:
  const Checkpoint& checkpoint_;
  std::unique_ptr<ItemFiles> files_;
};

}  // namespace shw
