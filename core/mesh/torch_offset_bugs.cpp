#include "core/mesh/torch_offset_bugs.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/checked.h"

namespace shw {
namespace {

bool is_sharding(const Placement& placement) {
  return placement.kind == Placement::Kind::kShard ||
         placement.kind == Placement::Kind::kStridedShard;
}

bool is_strided(const Placement& placement) {
  return placement.kind == Placement::Kind::kStridedShard;
}

std::optional<std::size_t> dim_of(const Placement& placement, std::size_t ndim) {
  std::int64_t dim =
      placement.dim < 0 ? placement.dim + static_cast<std::int64_t>(ndim) : placement.dim;
  if (dim < 0 || dim >= static_cast<std::int64_t>(ndim)) return std::nullopt;
  return static_cast<std::size_t>(dim);
}

Status check_arguments(ExtentsView shape, const Mesh& mesh,
                       const std::vector<Placement>& placements, std::int64_t rank) {
  // A limit larger than any cluster, and small enough for the 64-bit arithmetic below.
  if (mesh.size() > (std::int64_t{1} << 31))
    return fail(ErrorKind::kUsage, "the mesh " + to_text(mesh) + " has more than 2^31 ranks");
  for (const Placement& placement : placements) {
    if (is_strided(placement) && placement.split_factor > (1 << 16))
      return fail(ErrorKind::kUnsupported, to_text(placement) + " leaves too many pieces");
  }
  // local_box reports all errors except rows that are not a box.
  auto box = local_box(shape, mesh, placements, rank);
  if (!box && box.error().kind == ErrorKind::kUsage) return tl::unexpected<Error>(box.error());
  return {};
}

// torch 2.6 `compute_local_shape_and_global_offset`, the part for strided placements: the same
// arithmetic, including its wrong results for uneven splits.
struct Torch26Offsets {
  ExtentsView shape;
  const Mesh& mesh;
  const std::vector<Placement>& placements;
  std::vector<std::int64_t> coordinates;

  Result<Box> run() const {
    Box box = whole(shape);
    std::vector<std::int64_t> shards(shape.size(), 1);
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (!is_sharding(placements[i])) continue;
      std::size_t d = *dim_of(placements[i], shape.size());
      Cut cut = chunk_of(box.sizes[d], mesh.axes[i].size, coordinates[i]);
      box.sizes[d] = cut.size;
      shards[d] *= mesh.axes[i].size;
      // "if global_offset <= local_offset": torch's test for a repeated split.
      if (box.offsets[d] <= cut.offset)
        box.offsets[d] = cut.offset;
      else
        box.offsets[d] += cut.offset;
    }
    if (std::any_of(placements.begin(), placements.end(), is_strided))
      SHW_CHECK(stride(box, shards));
    return box;
  }

  Status stride(Box& box, std::vector<std::int64_t>& shards) const {
    std::vector<std::int64_t> index(shape.size(), 0);
    std::vector<bool> seen(shape.size()), ended(shape.size());
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (!is_sharding(placements[i])) continue;
      std::size_t d = *dim_of(placements[i], shape.size());
      if (ended[d]) return fail(ErrorKind::kUnsupported, "a cut after the strided part has ended");
      if (seen[d]) ended[d] = true;
      if (is_strided(placements[i])) {
        seen[d] = true;
        index[d] += shards[d] / (placements[i].split_factor * mesh.axes[i].size) * coordinates[i];
      } else {
        shards[d] /= mesh.axes[i].size;
        index[d] += shards[d] * coordinates[i];
      }
    }
    for (std::size_t d = 0; d < shape.size(); ++d) box.offsets[d] = box.sizes[d] * index[d];
    return {};
  }
};

// The first row and the count, from splits applied left to right to index lists.
Result<Box> first_row(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                      std::int64_t rank) {
  std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
  Box box = whole(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    // Each step maps row i of the new list to the old list: the first row is traced back through
    // the splits, last one first.
    std::vector<std::int64_t> extents;
    std::vector<std::size_t> axes;
    std::int64_t extent = shape[d];
    for (std::size_t i = 0; i < placements.size(); ++i) {
      if (!is_sharding(placements[i]) || *dim_of(placements[i], shape.size()) != d) continue;
      extents.push_back(extent);
      axes.push_back(i);
      std::int64_t pieces = is_strided(placements[i]) ? placements[i].split_factor : 1;
      std::int64_t length = 0;
      for (std::int64_t p = 0; p < pieces; ++p) {
        Cut outer = chunk_of(extent, pieces, p);
        if (outer.size == 0) break;
        length += chunk_of(outer.size, mesh.axes[i].size, coordinates[i]).size;
      }
      extent = length;
    }
    box.sizes[d] = extent;
    if (extent == 0) {
      box.offsets[d] = shape[d];
      continue;
    }
    std::int64_t row = 0;
    for (std::size_t step = axes.size(); step-- > 0;) {
      const Placement& placement = placements[axes[step]];
      std::int64_t pieces = is_strided(placement) ? placement.split_factor : 1;
      for (std::int64_t p = 0; p < pieces; ++p) {
        Cut outer = chunk_of(extents[step], pieces, p);
        Cut inner = chunk_of(outer.size, mesh.axes[axes[step]].size, coordinates[axes[step]]);
        if (row < inner.size) {
          row += outer.offset + inner.offset;
          break;
        }
        row -= inner.size;
      }
    }
    box.offsets[d] = row;
  }
  return box;
}

// A strided axis that waits until later axes have split its dimension into split_factor pieces. One
// or several axes may do so (FSDP over experts and their tensor ranks).
struct StridedAxis {
  std::size_t axis = 0;
  std::int64_t pieces = 1;  // number of pieces so far
};

// Axis `cut` has split: adds the axes that waited for it, innermost first.
void add_strided_axes_after(const Mesh& mesh, const std::vector<Placement>& placements,
                            std::size_t cut, std::vector<StridedAxis>& waiting,
                            std::vector<std::size_t>& order) {
  std::int64_t pieces = mesh.axes[cut].size;
  for (std::size_t w = waiting.size(); w-- > 0;) {
    const std::size_t axis = waiting[w].axis;
    if (placements[axis].dim != placements[cut].dim) continue;
    waiting[w].pieces =
        checked_mul(waiting[w].pieces, pieces).value_or(std::numeric_limits<std::int64_t>::max());
    // An axis of one rank does not split, whatever its factor is.
    if (placements[axis].split_factor != waiting[w].pieces && mesh.axes[axis].size != 1) continue;
    pieces = checked_mul(pieces, mesh.axes[axis].size)
                 .value_or(std::numeric_limits<std::int64_t>::max());
    order.push_back(axis);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(w));
  }
}

}  // namespace

Result<std::vector<std::size_t>> execution_order_of_splits(
    const Mesh& mesh, const std::vector<Placement>& placements) {
  std::vector<std::size_t> order;
  std::vector<StridedAxis> waiting;  // outermost first
  for (std::size_t i = 0; i < placements.size() && i < mesh.axes.size(); ++i) {
    if (!is_sharding(placements[i])) continue;
    if (is_strided(placements[i])) {
      waiting.push_back({i});
      continue;
    }
    order.push_back(i);
    add_strided_axes_after(mesh, placements, i, waiting, order);
  }
  for (const StridedAxis& strided : waiting) {
    const Placement& placement = placements[strided.axis];
    if (mesh.axes[strided.axis].size != 1) {
      if (strided.pieces != 1)
        return fail(ErrorKind::kUnsupported,
                    fmt::format("{} does not match the {} pieces that later axes cut",
                                to_text(placement), strided.pieces));
      // If no other axis splits the dimension, factor 1 means a plain split; other factors refer to
      // unknown splits.
      if (placement.split_factor != 1)
        return fail(ErrorKind::kUnsupported,
                    to_text(placement) + " has no plain shard of its dimension after it");
    }
    order.push_back(strided.axis);
  }
  return order;
}

Result<Box> box_of_nested_splits(ExtentsView shape, const Mesh& mesh,
                                 const std::vector<Placement>& placements, std::int64_t rank) {
  SHW_CHECK(check_arguments(shape, mesh, placements, rank));
  SHW_TRY(std::vector<std::size_t> order, execution_order_of_splits(mesh, placements));
  std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
  Box box = whole(shape);
  for (std::size_t i : order) {
    std::size_t d = *dim_of(placements[i], shape.size());
    Cut cut = chunk_of(box.sizes[d], mesh.axes[i].size, coordinates[i]);
    box.offsets[d] += cut.offset;
    box.sizes[d] = cut.size;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.sizes[d] == 0) box.offsets[d] = shape[d];
  }
  return box;
}

Result<Box> box_recorded_by_torch(OffsetModel model, ExtentsView shape, const Mesh& mesh,
                                  const std::vector<Placement>& placements, std::int64_t rank) {
  SHW_CHECK(check_arguments(shape, mesh, placements, rank));
  switch (model) {
    case OffsetModel::kByIndex:
      return Torch26Offsets{shape, mesh, placements, mesh.coordinates(rank)}.run();
    case OffsetModel::kExplicitOrder:
      return box_of_nested_splits(shape, mesh, placements, rank);
    case OffsetModel::kFirstRow:
      break;
  }
  return first_row(shape, mesh, placements, rank);
}

std::vector<Placement> as_plain_placements(const std::vector<Placement>& placements) {
  std::vector<Placement> plain = placements;
  for (Placement& placement : plain) {
    if (is_strided(placement)) placement = {Placement::Kind::kShard, placement.dim, 1};
  }
  return plain;
}

MeshLayout without_axis(const Mesh& mesh, const std::vector<Placement>& placements,
                        std::size_t axis) {
  MeshLayout out{mesh, placements};
  if (axis < placements.size()) {
    const Placement gone = placements[axis];
    std::int64_t parts = mesh.axes[axis].size;
    for (std::size_t i = 0; i < axis; ++i) {
      Placement& earlier = out.placements[i];
      if (!is_sharding(gone) || !is_strided(earlier) || earlier.dim != gone.dim) continue;
      if (earlier.split_factor % parts == 0) earlier.split_factor /= parts;
      if (earlier.split_factor == 1) earlier = {Placement::Kind::kShard, earlier.dim, 1};
    }
    out.placements.erase(out.placements.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  out.mesh.axes.erase(out.mesh.axes.begin() + static_cast<std::ptrdiff_t>(axis));
  return out;
}

}  // namespace shw
