// Device meshes and placements, as torch's DTensor has them; ranks are row-major over the mesh.
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
  std::int64_t size() const;  // ranks
  // Coordinate of a rank on every axis.
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
  std::int64_t dim = 0;           // of kShard, kStridedShard; may be negative as torch allows
  std::int64_t split_factor = 1;  // of kStridedShard
  friend bool operator==(const Placement&, const Placement&) = default;
};

// "Replicate", "Shard(1)", "StridedShard(0, 2)", "_StridedShard(dim=0, sf=2)", "Partial(sum)", and
// torch's short forms "R", "S(1)", "SS(0,2)".
std::optional<Placement> parse_placement(std::string_view text);
std::string to_text(const Placement& placement);
std::string to_text(const std::vector<Placement>& placements);  // "Shard(2), Shard(0)"
// "dp=4,tp=2" or "dp:4,tp:2".
Result<Mesh> parse_mesh(std::string_view text);
std::string to_text(const Mesh& mesh);   // "dp 4 x tp 2"
std::string typed_as(const Mesh& mesh);  // "dp=4,tp=2": what parse_mesh() reads
// Those of more than one rank: the others cut nothing.
std::vector<MeshAxis> long_axes(const Mesh& mesh);

// torch.chunk: part `index` of `extent` cut into `parts`: {offset, size}; empty parts start at
// `extent` (torch >= 2.8).
struct Cut {
  std::int64_t offset = 0;
  std::int64_t size = 0;
};
Cut chunk_of(std::int64_t extent, std::int64_t parts, std::int64_t index);

// The box that `rank` holds, placements applied left to right on the current local extent, a
// StridedShard split first into its split_factor pieces (torch >= 2.10
// `compute_local_shape_and_global_offset`, spec/failures.md 0.2). kUnsupported where the rows are
// no box.
Result<Box> local_box(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                      std::int64_t rank);
// The same where its rows lie in several pieces: a box for each, row-major; none where it holds
// nothing.
Result<std::vector<Box>> local_boxes(ExtentsView shape, const Mesh& mesh,
                                     const std::vector<Placement>& placements, std::int64_t rank);

}  // namespace shw
