// torchao's MX and NVFP4 weights: numbers of 8 or 4 bits and a scale per group of a row. Kernels
// take the scales in tiles (kSwizzledRows x kSwizzledGroups): of a tile's 128 rows, row r is at
// r % 32, behind those of r - 32.
#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/facts/values/quant_scaled.h"
#include "core/facts/values/quant_torchao.h"

namespace shw {
namespace {

constexpr std::int64_t kTile = kSwizzledRows * kSwizzledGroups;

struct GroupScales {
  TensorId scale{};
  Extents exact;  // [..., rows, groups]
  bool is_swizzled = false;
};

// The place of a scale among those of its row of tiles; `row` is within the tile.
std::size_t swizzled_scale_position(std::int64_t row, std::int64_t group) {
  const std::int64_t in_tile = row % 32 * 16 + row / 32 * kSwizzledGroups + group % kSwizzledGroups;
  return static_cast<std::size_t>(group / kSwizzledGroups * kTile + in_tile);
}

// The box of `tiles` rows of tiles from `first` on: 32 rows of numbers each, or a run of a flat
// one.
Box box_of_swizzled_tiles(ExtentsView shape, std::int64_t first, std::int64_t tiles,
                          std::int64_t in_row) {
  if (shape.size() == 1) return {{first * in_row * kTile}, {tiles * in_row * kTile}};
  Box box = whole(copy_of(shape));
  box.offsets[shape.size() - 2] = first * 32;
  box.sizes[shape.size() - 2] = tiles * 32;
  return box;
}

// The scales of rows [first, first + count) of the first dimension, in order.
QuantFloats read_scales_unswizzled(const Checkpoint& c, const GroupScales& from, std::int64_t first,
                                   std::int64_t count) {
  if (!from.is_swizzled) return read_box_scales(c, from.scale, rows_box(from.exact, first, count));
  const bool is_matrix = from.exact.size() == 2;
  const std::int64_t groups = from.exact.back();
  const std::int64_t in_row = ceil_divide(groups, kSwizzledGroups);
  // Matrices have whole tiles (is_decodable), so their rows follow each other.
  const std::int64_t rows_of_one = is_matrix ? 1 : from.exact[1];
  const std::int64_t first_row = first * rows_of_one, rows = count * rows_of_one;
  const std::int64_t first_tile = first_row / kSwizzledRows;
  const std::int64_t tiles =
      rows == 0 ? 0 : (first_row + rows - 1) / kSwizzledRows - first_tile + 1;
  const ExtentsView shape = c.shape(from.scale);
  const Box box = shape.size() == 3 ? rows_box(shape, first, count)
                                    : box_of_swizzled_tiles(shape, first_tile, tiles, in_row);
  SHW_TRY(const std::vector<float> stored, read_box_scales(c, from.scale, box));
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(rows * groups));
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const std::int64_t tile_row = row / kSwizzledRows - first_tile;
    const auto begin = static_cast<std::size_t>(tile_row * in_row * kTile);
    for (std::int64_t group = 0; group < groups; ++group)
      out.push_back(stored[begin + swizzled_scale_position(row % kSwizzledRows, group)]);
  }
  return out;
}

// nullopt if the scale is neither in order nor in tiles, or if tiles mix rows of two matrices.
std::optional<GroupScales> scales_of(const QuantSource& from, ExtentsView elements,
                                     std::int64_t group) {
  const auto scale = from.companion(0);
  if (!scale || elements.size() < 2 || elements.back() % group != 0) return std::nullopt;
  GroupScales scales{*scale, shape_of_groups(elements, group)};
  const ExtentsView shape = from.c().shape(*scale);
  if (same(shape, scales.exact)) return scales;
  scales.is_swizzled = true;
  const bool has_whole_tiles =
      elements.size() == 2 || (elements.size() == 3 && elements[1] % kSwizzledRows == 0);
  return has_whole_tiles && is_swizzled(shape, scales.exact) ? std::optional(scales) : std::nullopt;
}

// Numbers of rows of the first dimension; bytes hold two of FP4.
QuantFloats read_narrow_floats(const Checkpoint& c, TensorId weight, const Box& box) {
  if (c.dtype(weight) != Dtype::kUint8) return read_box_floats(c, weight, box);
  SHW_TRY(const Bytes bytes, read_box_bytes(c, weight, box));
  std::vector<float> out;
  out.reserve(bytes.size() * 2);
  for (std::byte both : bytes) {
    out.push_back(kFp4Numbers[std::to_integer<unsigned>(both) & 0xF]);
    out.push_back(kFp4Numbers[std::to_integer<unsigned>(both) >> 4]);
  }
  return out;
}

Result<DecodedWeight> group_scaled_decoder(const QuantSource& from, std::int64_t group,
                                           std::optional<TensorId> global) {
  Extents elements = copy_of(from.weight());
  if (from.c().dtype(from.pair.weight) == Dtype::kUint8) elements.back() *= 2;
  if (from.of_class != nullptr && from.of_class->shape && !same(*from.of_class->shape, elements))
    return from.unfit("has numbers for another shape than its class says");
  if (!from.companion(0)) return from.unfit("has no scale next to it");
  const auto scales = scales_of(from, elements, group);
  if (!scales && has_kernel_scale_layout(from.c().shape(*from.companion(0)), elements, group))
    return from.unreadable_error("has scales whose tiles mix rows of two matrices");
  if (!scales)
    return from.unfit("has scales that are neither one per group of its rows nor tiles of these");
  // One number, or one per matrix: [experts, 1, 1].
  const auto globals = global ? volume(from.c().shape(*global)) : 1;
  const bool is_number = !global || from.is_float(global);
  if (!is_number || (globals != 1 && (elements.size() != 3 || globals != elements[0] ||
                                      from.c().shape(*global)[0] != elements[0])))
    return from.unfit("has a per_tensor_scale that does not fit it");
  const bool is_per_matrix = globals != 1;
  const auto of_one = static_cast<std::size_t>(group);
  const auto of_matrix = static_cast<std::size_t>(is_per_matrix ? elements[1] * elements[2] : 0);
  DecodedWeight decoded = from.result(decoded_name(from), std::move(elements));
  decoded.rows_at_once = scales->is_swizzled && decoded.shape.size() == 2 ? kSwizzledRows : 1;
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scales = *scales,
                    of_one, of_matrix,
                    global](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(std::vector<float> out,
            read_narrow_floats(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(const std::vector<float> factors, read_scales_unswizzled(c, scales, first, count));
    std::vector<float> whole_factors{1.0f};
    if (global) {
      const ExtentsView shape = c.shape(*global);
      SHW_TRY(whole_factors, read_box_floats(c, *global,
                                             of_matrix == 0 ? whole(copy_of(shape))
                                                            : rows_box(shape, first, count)));
    }
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] *= whole_factors[of_matrix == 0 ? 0 : i / of_matrix] * factors[i / of_one];
    return out;
  };
  return decoded;
}

}  // namespace

Result<DecodedWeight> torchao_mx_decoder(const QuantSource& from) {
  return group_scaled_decoder(from, kMxGroup, std::nullopt);
}

Result<DecodedWeight> torchao_nvfp4_decoder(const QuantSource& from) {
  if (from.of_class == nullptr && !from.companion(1))
    return from.unreadable_error(
        "has no per_tensor_scale, and no file says that its class has none");
  return group_scaled_decoder(from, kNvGroup, from.companion(1));
}

}  // namespace shw
