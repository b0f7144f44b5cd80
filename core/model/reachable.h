// Whether what a checkpoint records is there to be read: its file is one, and is long enough.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

bool is_reachable(const Checkpoint& checkpoint, ChunkId chunk);
// kUnsupported, with the file and the entry, where the item cannot be carried over.
Status check_reachable(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item,
                       std::string_view fqn);
// The same of everything that is recorded; says how much more there is.
Status check_all_reachable(const Checkpoint& checkpoint);

}  // namespace shw
