// Known wrong metadata of savers: functions from mesh and placements to the box that a faulty
// version records. They explain findings; correct boxes are never derived from them.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/result.h"
#include "core/mesh/mesh.h"
#include "core/tensor/shape.h"

namespace shw {

// Three generations of torch's offset computation for strided shards.
enum class OffsetModel : std::uint8_t {
  kByIndex,        // torch 2.5 to 2.7: sizes left to right, offset = local size * shard index
  kExplicitOrder,  // torch 2.8 and 2.9: splits in execution order; exact
  kFirstRow,       // since 2.10: left to right, strided splits piecewise; records only first row
                   // and length
};

// The chunk that this torch generation records for `rank`. kUnsupported if it rejects the
// placements.
Result<Box> box_recorded_by_torch(OffsetModel model, ExtentsView shape, const Mesh& mesh,
                                  const std::vector<Placement>& placements, std::int64_t rank);

// The rows that a rank really holds: a strided axis (FSDP) splits after the plain one (TP).
Result<Box> box_of_nested_splits(ExtentsView shape, const Mesh& mesh,
                                 const std::vector<Placement>& placements, std::int64_t rank);

// Mesh axes that split a dimension, in execution order. kUnsupported if a split factor is not the
// product of the preceding axes.
Result<std::vector<std::size_t>> execution_order_of_splits(
    const Mesh& mesh, const std::vector<Placement>& placements);

// Replaces strided placements by plain ones, as a faulty saver does.
std::vector<Placement> as_plain_placements(const std::vector<Placement>& placements);

// A mesh and placements without an axis that the saver forgot.
struct MeshLayout {
  Mesh mesh;
  std::vector<Placement> placements;
};
MeshLayout without_axis(const Mesh& mesh, const std::vector<Placement>& placements,
                        std::size_t axis);

}  // namespace shw
