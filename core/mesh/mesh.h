// Device meshes and placements as in torch's DTensor; ranks are row-major over the mesh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/shape.h"

namespace shw {

struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;
  std::int64_t size() const;  // number of ranks
  // Coordinates of a rank, one per axis.
  std::vector<std::int64_t> coordinates(std::int64_t rank) const;
  std::int64_t rank(const std::vector<std::int64_t>& coordinates) const;
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

struct Placement {
  enum class Kind : std::uint8_t {
    kReplicate,
    kShard,
    kStridedShard,
    kPartial
  } kind = Kind::kReplicate;
  std::int64_t dim = 0;           // kShard, kStridedShard; may be negative as in torch
  std::int64_t split_factor = 1;  // kStridedShard
  friend bool operator==(const Placement&, const Placement&) = default;
};

// "Replicate", "Shard(1)", "StridedShard(0, 2)", "_StridedShard(dim=0, sf=2)", "Partial(sum)", and
// torch's short forms "R", "S(1)", "SS(0,2)".
std::optional<Placement> parse_placement(std::string_view text);
std::string to_text(const Placement& placement);
std::string to_text(const std::vector<Placement>& placements);  // "Shard(2), Shard(0)"
// Parses "dp=4,tp=2" or "dp:4,tp:2".
Result<Mesh> parse_mesh(std::string_view text);
std::string to_text(const Mesh& mesh);           // "dp 4 x tp 2"
std::string mesh_option_text(const Mesh& mesh);  // "dp=4,tp=2": what parse_mesh() reads
// Axes with more than one rank; the others split nothing.
std::vector<MeshAxis> axes_longer_than_one(const Mesh& mesh);

// Part `index` of `extent` split into `parts` by torch.chunk: {offset, size}. Empty parts start at
// `extent` (torch >= 2.8).
struct Cut {
  std::int64_t offset = 0;
  std::int64_t size = 0;
};
Cut chunk_of(std::int64_t extent, std::int64_t parts, std::int64_t index);

// The box that `rank` holds. Placements are applied left to right to the local extent;
// a StridedShard first splits into split_factor pieces (torch >= 2.10
// `compute_local_shape_and_global_offset`). kUnsupported if the rows do not form a
// box.
Result<Box> local_box(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                      std::int64_t rank);
// The boxes that `rank` holds if its rows are in several pieces, row-major; empty if it holds
// nothing.
Result<std::vector<Box>> local_boxes(ExtentsView shape, const Mesh& mesh,
                                     const std::vector<Placement>& placements, std::int64_t rank);

}  // namespace shw
