// Shape relation of a placement that stayed on the old axis when the tensor was transposed: one
// axis is k times too long, another k times too short.
#pragma once

#include <optional>
#include <string>

#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// saved[grown] = factor * expected[grown] and saved[shrunk] * factor = expected[shrunk]; all other
// extents are equal.
struct AxisRelation {
  std::size_t grown = 0, shrunk = 0;
  std::int64_t factor = 1;
};
std::optional<AxisRelation> relate_axes(ExtentsView saved, ExtentsView expected);

// True if a plain transpose gives the same shapes: [E, n, kn] and [E, kn, n].
bool fits_plain_transpose(ExtentsView expected, const AxisRelation& relation);

// True if new offsets alone repair the tensor: every non-empty chunk spans exactly one correct
// extent along the grown axis, at a multiple of it, and all of the shrunk axis.
bool tiles_allow_relabel(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected,
                         const AxisRelation& relation);

// True for a whole tensor in a plain safetensors file: its original chunks are unknown, so a repair
// has to move bytes.
bool is_consolidated(const Checkpoint& checkpoint, TensorId tensor);

// Why a tensor with such a relation cannot be relabelled; empty if the shapes are not related in
// this way.
std::string why_axes_are_not_relabelled(const Checkpoint& checkpoint, TensorId tensor,
                                        ExtentsView expected);

}  // namespace shw
