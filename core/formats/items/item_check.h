// Verifies the checksums of items, which torch never does, and counts their elements in the same
// pass. Call these in disk order: the cursor keeps files open between items, and small items are
// read together.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"
#include "core/tensor/statistics_counter.h"

namespace shw {

// Statistics collected by check_item_data().
struct ItemNumbers {
  StatisticsCounter& counter;               // not thread-safe
  std::optional<StatisticsSums> sums = {};  // set if all elements are stored undecoded
};
// Verifies the checksums of an item. If `header` is given and the elements are stored undecoded,
// statistics are computed in the same pass.
Result<DataCheck> check_item_data(ItemCursor& items, ChunkId chunk, Progress* progress,
                                  const ItemHeader* header = nullptr,
                                  ItemNumbers* numbers = nullptr);
// Verifies a single item.
Result<DataCheck> check_item_data(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress,
                                  const ItemHeader* header = nullptr,
                                  ItemNumbers* numbers = nullptr);
// Verifies the checksums of the item of a BYTES entry.
Result<DataCheck> check_object_data(const Checkpoint& checkpoint, std::size_t object,
                                    Progress* progress);
// Verifies the checksums of data referenced by entries without an item of their own
// (ItemReader::check_inlined); mismatches are stored in `objects`, one result per entry.
Status check_inlined_data(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress);

}  // namespace shw
