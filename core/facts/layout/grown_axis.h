// The arithmetic of a placement that stayed on the old axis while the tensor was transposed
// (spec/failures.md, P10 and section 2): one axis is k times too long, another k times too short.
#pragma once

#include <optional>
#include <string>

#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// saved[grown] = factor * expected[grown], saved[shrunk] * factor = expected[shrunk], all else
// equal.
struct AxisRelation {
  std::size_t grown = 0, shrunk = 0;
  std::int64_t factor = 1;
};
std::optional<AxisRelation> relate_axes(ExtentsView saved, ExtentsView expected);

// The same shapes also come from a plain transpose: [E, n, kn] and [E, kn, n].
bool is_also_transposed(ExtentsView expected, const AxisRelation& relation);

// Every tile spans exactly one true extent along the grown axis, on a multiple of it, and all of
// the shrunk axis: then new offsets alone mend it. Empty tiles say nothing.
bool tiles_allow_relabel(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected,
                         const AxisRelation& relation);

// The tensor lies in a plain safetensors file, whole: the tiles that it was put together from are
// gone and can say nothing, and bytes have to move.
bool is_consolidated(const Checkpoint& checkpoint, TensorId tensor);

// Why a tensor whose shapes are so related is no case for a relabel; empty where they are not
// related.
std::string why_not_relabelled(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected);

}  // namespace shw
