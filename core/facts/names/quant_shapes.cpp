#include "core/facts/names/quant_shapes.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {
namespace {

CompanionShape grouped(std::int64_t rows, std::int64_t columns, const QuantSettings& config) {
  const std::int64_t groups =
      !config.group || *config.group < 1 ? 1 : ceil_divide(rows, *config.group);
  return Extents{groups, columns};
}

bool is_awq(const QuantSettings& config) {
  return config.method == "awq";
}

bool has_group_size(const QuantSettings& config, ExtentsView weight) {
  const bool known = config.method == "gptq" || config.method == "awq";
  return known && config.bits && *config.bits > 0 && *config.bits <= 32 && config.group &&
         !config.has_overrides && !config.has_other_layout && weight.size() == 2;
}

// Kernels pad rows to 128 and groups to 4.
bool is_padded(ExtentsView companion, ExtentsView exact) {
  if (companion.size() != exact.size() || exact.size() < 2) return false;
  Extents padded(exact.begin(), exact.end());
  std::int64_t &rows = padded[padded.size() - 2], &groups = padded.back();
  const auto padded_rows = checked_mul(ceil_divide(rows, 128), std::int64_t{128});
  const auto padded_groups = checked_mul(ceil_divide(groups, 4), std::int64_t{4});
  if (!padded_rows || !padded_groups) return false;
  rows = *padded_rows;
  groups = *padded_groups;
  return same(companion, padded);
}

CompanionShape exact_scale_shape(ExtentsView elements, std::int64_t group, ExtentsView companion) {
  Extents exact = shape_of_groups(elements, group);
  return has_kernel_scale_layout(companion, elements, group) ? std::nullopt
                                                             : CompanionShape(std::move(exact));
}

}  // namespace

// One scale per block of the last two axes; any shape is accepted if the config has no block size.
CompanionShape block_scale_shape(const QuantSettings& config, ExtentsView weight, ExtentsView) {
  if (!config.block || weight.size() < 2) return std::nullopt;
  Extents shape(weight.begin(), weight.end());
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t& extent = shape[shape.size() - 2 + i];
    extent = ceil_divide(extent, (*config.block)[i]);
  }
  return shape;
}

// One exponent per 32 elements of a row: one byte per element (MXFP8) or per two (FP4 as int8). A
// checkpoint may have such weights besides block-scaled ones.
CompanionShape byte_scale_shape(const QuantSettings& config, ExtentsView weight,
                                ExtentsView companion) {
  const bool are_rows = !weight.empty() && companion.size() == weight.size() &&
                        std::equal(companion.begin(), companion.end() - 1, weight.begin());
  for (const std::int64_t bytes : {32, 16}) {
    if (are_rows && weight.back() % bytes == 0 && weight.back() / bytes == companion.back())
      return std::nullopt;
  }
  return block_scale_shape(config, weight, companion);
}

// Drops the last axis: one scale per group of 32 elements.
CompanionShape mx_block_scale_shape(const QuantSettings&, ExtentsView weight, ExtentsView) {
  return Extents(weight.begin(), weight.end() - 1);
}

CompanionShape single_number_shape(const QuantSettings&, ExtentsView, ExtentsView companion) {
  return volume(companion) == 1 ? std::nullopt : CompanionShape(Extents{});
}

CompanionShape two_numbers_shape(const QuantSettings&, ExtentsView, ExtentsView) {
  return Extents{2};
}

CompanionShape nf4_table_shape(const QuantSettings&, ExtentsView, ExtentsView) {
  return Extents{16};
}

CompanionShape byte_table_shape(const QuantSettings&, ExtentsView, ExtentsView) {
  return Extents{256};
}

// One number per unpacked row: GPTQ packs word_bits / bits rows into one.
CompanionShape gptq_row_index_shape(const QuantSettings& config, ExtentsView weight, ExtentsView) {
  if (!config.bits || config.has_overrides || config.has_other_layout || weight.size() != 2)
    return std::nullopt;
  auto bits = checked_mul(weight[0], config.word_bits);
  return bits ? CompanionShape(Extents{*bits / *config.bits}) : std::nullopt;
}

CompanionShape group_scales_shape(const QuantSettings& config, ExtentsView weight, ExtentsView) {
  if (!has_group_size(config, weight)) return std::nullopt;
  const std::int64_t bits = *config.bits;
  auto unpacked = checked_mul(is_awq(config) ? weight[1] : weight[0], config.word_bits);
  if (!unpacked) return std::nullopt;
  return is_awq(config) ? grouped(weight[0], *unpacked / bits, config)
                        : grouped(*unpacked / bits, weight[1], config);
}

CompanionShape group_zeros_shape(const QuantSettings& config, ExtentsView weight, ExtentsView) {
  if (!has_group_size(config, weight)) return std::nullopt;
  const std::int64_t bits = *config.bits;
  auto unpacked = checked_mul(weight[0], config.word_bits);
  auto packed = checked_mul(weight[1], bits);
  if (!unpacked || !packed) return std::nullopt;
  return is_awq(config) ? grouped(weight[0], weight[1], config)
                        : grouped(*unpacked / bits, ceil_divide(*packed, config.word_bits), config);
}

// compressed-tensors packs columns. Columns that do not fill the last number are not checked.
CompanionShape packed_scale_shape(const QuantSettings& config, ExtentsView weight, ExtentsView) {
  if (!config.weight_bits || !config.weight_group || *config.weight_group < 1 ||
      *config.weight_bits < 1 || 32 % *config.weight_bits != 0 || weight.size() != 2)
    return std::nullopt;
  const auto columns = checked_mul(weight[1], 32 / *config.weight_bits);
  if (!columns || *columns % *config.weight_group != 0) return std::nullopt;
  return Extents{weight[0], *columns / *config.weight_group};
}

// MLX packs columns. Modules may override bits and group size: without both in the config only the
// rows are checked, and the rest is compared with other weights.
CompanionShape mlx_scales_shape(const QuantSettings& config, ExtentsView weight,
                                ExtentsView companion) {
  Extents shape(weight.begin(), weight.end());
  const bool says =
      config.bits && config.group && *config.bits > 0 && *config.group > 0 && !config.has_overrides;
  auto unpacked = checked_mul(shape.back(), std::int64_t{32});
  if (says && unpacked)
    shape.back() = ceil_divide(*unpacked / *config.bits, *config.group);
  else if (companion.size() == weight.size())
    shape.back() = companion.back();
  return !says && same(shape, companion) ? std::nullopt : CompanionShape(std::move(shape));
}

// One number per block of elements; two elements share a byte, and block sizes are powers of two.
// Codes in the bytes of floats (bnb_4bit_quant_storage) make up to four times as many elements.
CompanionShape block_absmax_shape(const QuantSettings&, ExtentsView weight, ExtentsView companion) {
  const auto elements = checked_mul(weight[0], std::int64_t{2});
  if (!elements) return std::nullopt;
  for (std::int64_t block = 8; block <= 4096; block *= 2)
    if (volume(companion) == ceil_divide(*elements, block)) return std::nullopt;
  return Extents{ceil_divide(*elements, std::int64_t{64})};
}

CompanionShape per_row_shape(const QuantSettings&, ExtentsView weight, ExtentsView companion) {
  return volume(companion) == weight[0] ? std::nullopt : CompanionShape(Extents{weight[0]});
}

// torchao's int4: [..., groups, rows] for a weight of [..., rows, packed columns].
CompanionShape per_group_and_row_shape(const QuantSettings&, ExtentsView weight,
                                       ExtentsView companion) {
  Extents shape(weight.begin(), weight.end());
  shape.back() = weight[weight.size() - 2];
  shape[shape.size() - 2] = companion.size() == weight.size() ? companion[weight.size() - 2] : 1;
  return shape;
}

CompanionShape tile_scale_and_zero_shape(const QuantSettings&, ExtentsView weight,
                                         ExtentsView companion) {
  const auto tiles = int4_tiles(weight);
  if (!tiles) return std::nullopt;
  Extents shape = tiles->elements;
  const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const std::int64_t groups =
      companion.size() == shape.size() + 1 ? companion[shape.size() - 2] : 1;
  const bool divides = groups > 0 && columns % groups == 0;
  shape[shape.size() - 2] = divides ? groups : 1;
  shape.back() = rows;
  shape.push_back(2);
  return shape;
}

// CompanionShape of the elements: two share a byte.
Extents elements_of_fp4(ExtentsView weight) {
  Extents elements(weight.begin(), weight.end());
  elements.back() = checked_mul(elements.back(), std::int64_t{2}).value_or(0);
  return elements;
}

CompanionShape mxfp8_scale_shape(const QuantSettings&, ExtentsView weight, ExtentsView companion) {
  return exact_scale_shape(weight, kMxGroup, companion);
}

CompanionShape mxfp4_scale_shape(const QuantSettings&, ExtentsView weight, ExtentsView companion) {
  return exact_scale_shape(elements_of_fp4(weight), kMxGroup, companion);
}

CompanionShape nvfp4_scale_shape(const QuantSettings&, ExtentsView weight, ExtentsView companion) {
  if (has_groups_of_inputs(weight, companion)) return std::nullopt;
  return exact_scale_shape(elements_of_fp4(weight), kNvGroup, companion);
}

Extents shape_of_groups(ExtentsView elements, std::int64_t group) {
  Extents shape(elements.begin(), elements.end());
  if (!shape.empty()) shape.back() = ceil_divide(shape.back(), group);
  return shape;
}

bool is_swizzled(ExtentsView scale, ExtentsView exact) {
  if (exact.size() < 2) return false;
  Extents tiles(exact.begin(), exact.end());
  std::int64_t &rows = tiles[tiles.size() - 2], &groups = tiles.back();
  rows = ceil_divide(rows, kSwizzledRows) * 32;  // a quarter of the padded rows
  const auto in_tiles = checked_mul(ceil_divide(groups, kSwizzledGroups), std::int64_t{16});
  if (!in_tiles) return false;
  groups = *in_tiles;
  return same(scale, tiles) || (scale.size() == 1 && volume(tiles) == scale[0]);
}

bool has_kernel_scale_layout(ExtentsView scale, ExtentsView elements, std::int64_t group) {
  const Extents exact = shape_of_groups(elements, group);
  return is_padded(scale, exact) || is_swizzled(scale, exact);
}

bool has_groups_of_rows(ExtentsView weight, ExtentsView scale) {
  if (weight.size() != scale.size() || weight.size() < 2) return false;
  const std::size_t rows = weight.size() - 2;
  return same(weight.first(rows), scale.first(rows)) && scale.back() == weight[rows] &&
         scale[rows] != weight[rows];
}

std::optional<Int4Tiles> int4_tiles(ExtentsView stored) {
  constexpr std::int64_t kLanes = 32, kMost = std::int64_t{1} << 45;
  if (stored.size() < 4 || stored.size() > 5) return std::nullopt;
  const std::size_t at = stored.size() - 4;
  const std::int64_t words = stored[at + 3];
  const auto count = volume(stored);
  if (stored[at + 2] != kLanes || (words != 1 && words != 2 && words != 4) || !count ||
      *count < 1 || *count > kMost)
    return std::nullopt;
  Int4Tiles tiles;
  tiles.elements = copy_of(stored.first(at));
  tiles.elements.push_back(stored[at] * Int4Tiles::kRows);
  tiles.elements.push_back(stored[at + 1] * words * Int4Tiles::kColumnsOfWord);
  tiles.words = words;
  return tiles;
}

}  // namespace shw
