// The shapes of quantised weights' companions, and of weights and scales in tiles.
#pragma once

#include <cstdint>
#include <optional>

#include "core/facts/names/quant_config.h"
#include "core/tensor/shape.h"

namespace shw {

// Number of columns that share a scale.
inline constexpr std::int64_t kMxGroup = 32, kNvGroup = 16;
// `elements` is the shape of the decoded weight.
Extents shape_of_groups(ExtentsView elements, std::int64_t group);
// True for stacked experts of NVFP4, [experts, inputs / 2, outputs], whose groups and pairs of
// numbers are along the inputs: the scale is [experts, inputs / 16, outputs] (modelopt).
inline bool has_groups_of_inputs(ExtentsView weight, ExtentsView scale) {
  return weight.size() == 3 && scale.size() == 3 && weight[0] == scale[0] &&
         weight[1] % (kNvGroup / 2) == 0 && weight[1] / (kNvGroup / 2) == scale[1] &&
         weight[2] == scale[2];
}

// A GPU kernel's order of scales: tiles of 128 rows and 4 groups, of which each is stored as 32 x
// 16 numbers (cuBLAS, "1D block scaling factors layout").
inline constexpr std::int64_t kSwizzledRows = 128, kSwizzledGroups = 4;
// True if `scale` is the shape of swizzled scales that are [..., rows, groups] in order (`exact`).
bool is_swizzled(ExtentsView scale, ExtentsView exact);

// True if a scale of groups of `elements` is padded or swizzled as kernels take it.
bool has_kernel_scale_layout(ExtentsView scale, ExtentsView elements, std::int64_t group);

// True if a scale [..., groups, rows] fits a weight [..., rows, columns], and cannot be one of
// [..., rows, groups].
bool has_groups_of_rows(ExtentsView weight, ExtentsView scale);

// A weight of int4 in the tiles of the tinygemm kernel, as torch's _convert_weight_to_int4pack
// makes them: [..., rows / 8, columns / (32 * words), 32 threads, words], 8 codes in each word.
// Rows and columns are padded.
struct Int4Tiles {
  static constexpr std::int64_t kRows = 8;            // of a tile
  static constexpr std::int64_t kColumnsOfWord = 32;  // columns of which each word has 8
  Extents elements;                                   // [..., rows, columns], with the padding
  std::int64_t words = 0;                             // that each of 32 threads has of a tile
};
std::optional<Int4Tiles> int4_tiles(ExtentsView stored);

// Shape of the elements of FP4: two share a byte.
Extents elements_of_fp4(ExtentsView weight);

// The shape that a companion should have; nullopt if the config and the weight do not tell, or if
// the companion fits.
using CompanionShape = std::optional<Extents>;
CompanionShape block_scale_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);
CompanionShape byte_scale_shape(const QuantSettings& config, ExtentsView weight,
                                ExtentsView companion);
CompanionShape mx_block_scale_shape(const QuantSettings& config, ExtentsView weight,
                                    ExtentsView companion);
CompanionShape single_number_shape(const QuantSettings& config, ExtentsView weight,
                                   ExtentsView companion);
CompanionShape two_numbers_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);
CompanionShape nf4_table_shape(const QuantSettings& config, ExtentsView weight,
                               ExtentsView companion);
CompanionShape byte_table_shape(const QuantSettings& config, ExtentsView weight,
                                ExtentsView companion);
CompanionShape gptq_row_index_shape(const QuantSettings& config, ExtentsView weight,
                                    ExtentsView companion);
CompanionShape group_scales_shape(const QuantSettings& config, ExtentsView weight,
                                  ExtentsView companion);
CompanionShape group_zeros_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);
CompanionShape packed_scale_shape(const QuantSettings& config, ExtentsView weight,
                                  ExtentsView companion);
CompanionShape mlx_scales_shape(const QuantSettings& config, ExtentsView weight,
                                ExtentsView companion);
CompanionShape block_absmax_shape(const QuantSettings& config, ExtentsView weight,
                                  ExtentsView companion);
CompanionShape per_row_shape(const QuantSettings& config, ExtentsView weight,
                             ExtentsView companion);
CompanionShape per_group_and_row_shape(const QuantSettings& config, ExtentsView weight,
                                       ExtentsView companion);
CompanionShape tile_scale_and_zero_shape(const QuantSettings& config, ExtentsView weight,
                                         ExtentsView companion);
CompanionShape mxfp8_scale_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);
CompanionShape mxfp4_scale_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);
CompanionShape nvfp4_scale_shape(const QuantSettings& config, ExtentsView weight,
                                 ExtentsView companion);

}  // namespace shw
