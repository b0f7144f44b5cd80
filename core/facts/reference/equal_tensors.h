// Tensors that hold what the reference holds, known before any rule looks closer.
#pragma once

#include <set>

#include "core/base/team.h"
#include "core/facts/check_input.h"

namespace shw {

// True where every item of one is the very item of the other: the same bytes of the same file.
bool has_same_items(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                    TensorId other);

// Tensors whose counterparts are cut into the same boxes and hold the same bytes; of those that are
// not read whole (`is_read_whole`), the ones whose items are the reference's own. Both sides are
// read once, in pieces, on every core and by all members of a team (null: alone); an item that is
// its own counterpart is not read. A tensor of which anything cannot be read is not among them.
// An error where somebody stopped it, or where the team broke.
Result<std::set<TensorId>> equal_to_reference(const CheckInput& input, Progress* progress,
                                              Team* team);

}  // namespace shw
