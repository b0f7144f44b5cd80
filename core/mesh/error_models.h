// What savers record instead of the truth: the known wrong ways from mesh and placements to a box.
// They explain what lies on disk; truth is never derived from them (spec/failures.md 0.3, 6.a).
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/mesh.h"
#include "core/tensor/shape.h"

namespace shw {

// Three generations of torch's offsets for strided shards.
enum class OffsetModel : std::uint8_t {
  kByIndex,        // g1, torch 2.5 to 2.7: sizes left to right, offset = local size * shard index
  kExplicitOrder,  // g2, 2.8 and 2.9: cuts in the order in which they were made; exact
  kFirstRow,       // g3, since 2.10: left to right, a strided cut piece by piece; first row, length
};

// The chunk that torch of that generation records for `rank`. kUnsupported where that generation
// refuses the placements.
Result<Box> recorded_box(OffsetModel model, ExtentsView shape, const Mesh& mesh,
                         const std::vector<Placement>& placements, std::int64_t rank);

// The rows that training holds: a strided axis (FSDP) cut after the plain one (TP) that follows it.
Result<Box> nested_box(ExtentsView shape, const Mesh& mesh,
                       const std::vector<Placement>& placements, std::int64_t rank);

// Mesh axes that cut something, in the order in which the cuts are made. kUnsupported where a split
// factor is not the product of the axes cut before.
Result<std::vector<std::size_t>> order_of_cuts(const Mesh& mesh,
                                               const std::vector<Placement>& placements);

// A strided placement treated as a plain one (S5 E2).
std::vector<Placement> as_plain(const std::vector<Placement>& placements);

// An axis that the saver forgot (S4, S5 E1): the same layout without it.
struct MeshLayout {
  Mesh mesh;
  std::vector<Placement> placements;
};
MeshLayout without_axis(const Mesh& mesh, const std::vector<Placement>& placements,
                        std::size_t axis);

// What DTensor.from_local without shape= makes of a local shape (0.3): the law of S1 and others.
Extents invented_shape(ExtentsView local, const Mesh& mesh,
                       const std::vector<Placement>& placements);

}  // namespace shw
