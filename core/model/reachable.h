// Checks that recorded items can be read: the file exists and is long enough.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

bool is_reachable(const Checkpoint& checkpoint, ChunkId chunk);
// kUnsupported, naming file and entry, if the item cannot be copied to a result.
Status check_reachable(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item,
                       std::string_view fqn);
// Checks all items of the checkpoint; the error counts the further failures.
Status check_all_reachable(const Checkpoint& checkpoint);

}  // namespace shw
