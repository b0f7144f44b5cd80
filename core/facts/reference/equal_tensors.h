// Tensors that equal the reference's, determined before any rule compares them in detail.
#pragma once

#include <set>

#include "core/base/team.h"
#include "core/facts/check_input.h"

namespace shw {

// True if all items of both tensors are the same bytes of the same file.
bool has_same_items(const Checkpoint& checkpoint, TensorId tensor, const Checkpoint& reference,
                    TensorId other);

// Tensors whose counterparts have the same chunk boxes and bytes. Tensors outside
// `is_read_whole` count only if their items are the reference's own. Both sides are read once,
// in pieces, on all cores and divided among the ranks of a team (null: alone); shared items are
// not read. Tensors that cannot be read are not included. Errors: cancellation, or a failure of
// the team.
Result<std::set<TensorId>> equal_to_reference(const CheckInput& input, Progress* progress,
                                              Team* team);

}  // namespace shw
