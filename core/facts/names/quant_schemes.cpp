#include "core/facts/names/quant_schemes.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/checked.h"

namespace shw {
namespace {

using Shape = std::optional<Extents>;

bool is_float8(Dtype dtype) {
  return dtype == Dtype::kFloat8E4m3fn || dtype == Dtype::kFloat8E5m2 ||
         dtype == Dtype::kFloat8E4m3fnuz || dtype == Dtype::kFloat8E5m2fnuz;
}

bool is_float8(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && is_float8(dtype);
}
bool is_float8_or_int8(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && (is_float8(dtype) || dtype == Dtype::kInt8);
}
bool is_int32(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kInt32;
}
bool is_bytes(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kUint8;
}
bool is_byte_column(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && shape[1] == 1 && dtype == Dtype::kUint8;
}
bool is_int8_matrix(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && dtype == Dtype::kInt8;
}
// Packed weights of torchao and quanto use bytes or 32-bit words.
bool is_packed_or_bytes(Dtype dtype, ExtentsView shape) {
  return is_float8_or_int8(dtype, shape) || is_bytes(dtype, shape) || is_int32(dtype, shape);
}
bool is_byte_or_int8(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && (dtype == Dtype::kUint8 || dtype == Dtype::kInt8);
}
bool is_int32_matrix(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && dtype == Dtype::kInt32;
}
bool is_int4_tiles(Dtype dtype, ExtentsView shape) {
  return dtype == Dtype::kInt32 && int4_tiles(shape).has_value();
}
bool is_float32(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kFloat32;
}
bool is_uint32(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kUint32;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// One scale per block of the last two axes; any shape is accepted if the config has no block size.
Shape scale_of_blocks(const QuantConfig& config, ExtentsView weight, ExtentsView) {
  if (!config.block || weight.size() < 2) return std::nullopt;
  Extents shape(weight.begin(), weight.end());
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t& extent = shape[shape.size() - 2 + i];
    extent = ceil_div(extent, (*config.block)[i]);
  }
  return shape;
}

// One exponent per 32 elements of a row: one byte per element (MXFP8) or per two (FP4 as int8). A
// checkpoint may have such weights besides block-scaled ones.
Shape scale_of_bytes(const QuantConfig& config, ExtentsView weight, ExtentsView companion) {
  const bool are_rows = !weight.empty() && companion.size() == weight.size() &&
                        std::equal(companion.begin(), companion.end() - 1, weight.begin());
  for (const std::int64_t bytes : {32, 16}) {
    if (are_rows && weight.back() % bytes == 0 && weight.back() / bytes == companion.back())
      return std::nullopt;
  }
  return scale_of_blocks(config, weight, companion);
}

// Drops the last axis: one scale per group of 32 elements.
Shape scale_of_mx_blocks(const QuantConfig&, ExtentsView weight, ExtentsView) {
  return Extents(weight.begin(), weight.end() - 1);
}

Shape single_number(const QuantConfig&, ExtentsView, ExtentsView companion) {
  return volume(companion) == 1 ? std::nullopt : Shape(Extents{});
}

// One number per unpacked row: GPTQ packs 32 / bits rows into one.
Shape one_per_row_of_gptq(const QuantConfig& config, ExtentsView weight, ExtentsView) {
  if (!config.bits || config.has_overrides || weight.size() != 2) return std::nullopt;
  auto bits = checked_mul(weight[0], std::int64_t{32});
  return bits ? Shape(Extents{*bits / *config.bits}) : std::nullopt;
}

Shape grouped(std::int64_t rows, std::int64_t columns, const QuantConfig& config) {
  const std::int64_t groups =
      !config.group || *config.group < 1 ? 1 : ceil_div(rows, *config.group);
  return Extents{groups, columns};
}

bool is_awq(const QuantConfig& config) {
  return config.method == "awq";
}

bool has_group_size(const QuantConfig& config, ExtentsView weight) {
  const bool known = config.method == "gptq" || config.method == "awq";
  return known && config.bits && *config.bits > 0 && *config.bits <= 32 && config.group &&
         !config.has_overrides && weight.size() == 2;
}

Shape scales_of_groups(const QuantConfig& config, ExtentsView weight, ExtentsView) {
  if (!has_group_size(config, weight)) return std::nullopt;
  const std::int64_t bits = *config.bits;
  auto unpacked = checked_mul(is_awq(config) ? weight[1] : weight[0], std::int64_t{32});
  if (!unpacked) return std::nullopt;
  return is_awq(config) ? grouped(weight[0], *unpacked / bits, config)
                        : grouped(*unpacked / bits, weight[1], config);
}

Shape zeros_of_groups(const QuantConfig& config, ExtentsView weight, ExtentsView) {
  if (!has_group_size(config, weight)) return std::nullopt;
  const std::int64_t bits = *config.bits;
  auto unpacked = checked_mul(weight[0], std::int64_t{32});
  auto packed = checked_mul(weight[1], bits);
  if (!unpacked || !packed) return std::nullopt;
  return is_awq(config) ? grouped(weight[0], weight[1], config)
                        : grouped(*unpacked / bits, ceil_div(*packed, 32), config);
}

// compressed-tensors packs columns. Columns that do not fill the last number are not checked.
Shape scale_of_packed(const QuantConfig& config, ExtentsView weight, ExtentsView) {
  if (!config.weight_bits || !config.weight_group || *config.weight_group < 1 ||
      *config.weight_bits < 1 || 32 % *config.weight_bits != 0 || weight.size() != 2)
    return std::nullopt;
  const auto columns = checked_mul(weight[1], 32 / *config.weight_bits);
  if (!columns || *columns % *config.weight_group != 0) return std::nullopt;
  return Extents{weight[0], *columns / *config.weight_group};
}

// MLX packs columns. Modules may override bits and group size, so only the rows are checked.
Shape scales_of_mlx(const QuantConfig& config, ExtentsView weight, ExtentsView companion) {
  Extents shape(weight.begin(), weight.end());
  const bool says =
      config.bits && config.group && *config.bits > 0 && *config.group > 0 && !config.has_overrides;
  auto unpacked = checked_mul(shape.back(), std::int64_t{32});
  if (says && unpacked)
    shape.back() = ceil_div(*unpacked / *config.bits, *config.group);
  else if (companion.size() == weight.size())
    shape.back() = companion.back();
  return shape;
}

// One number per block of elements; two elements share a byte, and block sizes are powers of two.
Shape absmax_of_blocks(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  const auto elements = checked_mul(weight[0], std::int64_t{2});
  if (!elements) return std::nullopt;
  for (std::int64_t block = 32; block <= 4096; block *= 2)
    if (volume(companion) == ceil_div(*elements, block)) return std::nullopt;
  return Extents{ceil_div(*elements, std::int64_t{64})};
}

Shape one_per_row(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  return volume(companion) == weight[0] ? std::nullopt : Shape(Extents{weight[0]});
}

// torchao's int4: [..., groups, rows] for a weight of [..., rows, packed columns].
Shape one_per_group_and_row(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  Extents shape(weight.begin(), weight.end());
  shape.back() = weight[weight.size() - 2];
  shape[shape.size() - 2] = companion.size() == weight.size() ? companion[weight.size() - 2] : 1;
  return shape;
}

Shape scale_and_zero_of_tiles(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
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

// Kernels pad rows to 128 and groups to 4.
bool is_padded(ExtentsView companion, ExtentsView exact) {
  if (companion.size() != exact.size() || exact.size() < 2) return false;
  Extents padded(exact.begin(), exact.end());
  std::int64_t &rows = padded[padded.size() - 2], &groups = padded.back();
  rows = ceil_div(rows, 128) * 128;
  groups = ceil_div(groups, 4) * 4;
  return same(companion, padded);
}
Shape exact_or_padded(ExtentsView elements, std::int64_t group, ExtentsView companion) {
  Extents exact = shape_of_groups(elements, group);
  return is_padded(companion, exact) || is_swizzled(companion, exact) ? std::nullopt
                                                                      : Shape(std::move(exact));
}
// Shape of the elements: two share a byte.
Extents elements_of_fp4(ExtentsView weight) {
  Extents elements(weight.begin(), weight.end());
  elements.back() = checked_mul(elements.back(), std::int64_t{2}).value_or(0);
  return elements;
}
Shape scale_of_mxfp8(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  return exact_or_padded(weight, kMxGroup, companion);
}
Shape scale_of_mxfp4(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  return exact_or_padded(elements_of_fp4(weight), kMxGroup, companion);
}
Shape scale_of_nvfp4(const QuantConfig&, ExtentsView weight, ExtentsView companion) {
  if (has_groups_of_inputs(weight, companion)) return std::nullopt;
  return exact_or_padded(elements_of_fp4(weight), kNvGroup, companion);
}

bool is_mxfp8(const Checkpoint& c, TensorId weight, TensorId scale) {
  if (c.dtype(scale) == Dtype::kUint8) return true;
  // float8_e8m0fnu is also used for scales of 128 x 128 blocks.
  return c.dtype(scale) == Dtype::kFloat8E8m0fnu &&
         same(c.shape(scale), shape_of_groups(c.shape(weight), kMxGroup));
}
bool is_mxfp4(const Checkpoint& c, TensorId weight, TensorId scale) {
  if (c.dtype(scale) != Dtype::kUint8 && c.dtype(scale) != Dtype::kFloat8E8m0fnu) return false;
  const ExtentsView bytes = c.shape(weight), shape = c.shape(scale);
  const Extents elements = elements_of_fp4(bytes);
  if (same(shape, shape_of_groups(elements, kMxGroup))) return true;
  // Excludes MXFP8 with elements stored as bytes, and NVFP4 with scales stored as bytes.
  return !same(shape, shape_of_groups(bytes, kMxGroup)) &&
         !same(shape, shape_of_groups(elements, kNvGroup));
}
bool is_nvfp4(const Checkpoint& c, TensorId weight, TensorId scale) {
  if (is_float8(c.dtype(scale))) return true;
  const Extents fitting = shape_of_groups(elements_of_fp4(c.shape(weight)), kNvGroup);
  return fitting.back() > 1 && same(c.shape(scale), fitting);
}
bool has_exponent_scale(const Checkpoint& c, TensorId, TensorId scale) {
  return c.dtype(scale) == Dtype::kUint8 || c.dtype(scale) == Dtype::kFloat8E8m0fnu;
}
bool has_float8_scale(const Checkpoint& c, TensorId, TensorId scale) {
  return is_float8(c.dtype(scale));
}
bool is_float_scale(const Checkpoint& c, TensorId, TensorId scale) {
  const Dtype dtype = c.dtype(scale);
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16;
}
bool has_scale_of_groups_first(const Checkpoint& c, TensorId weight, TensorId scale) {
  return has_groups_of_rows(c.shape(weight), c.shape(scale)) && is_float_scale(c, weight, scale);
}

using enum CompanionNeed;
constexpr QuantCompanion kScaled[] = {
    {".weight_scale_inv|.weight_scale|.scale_weight|.scale", kAlways, true, scale_of_bytes},
    {".input_scale|.activation_scale", kAsOthers, true, nullptr},
};
// Names for fused experts, which are parameters and not modules.
constexpr QuantCompanion kScaledParameter[] = {
    {"_scale_inv|_scale", kAlways, true, scale_of_bytes},
};
constexpr QuantCompanion kPacked[] = {
    {".weight_scale", kAlways, true, scale_of_packed},
    {".weight_shape", kAlways, false, nullptr},
    {".weight_zero_point", kAsOthers, false, nullptr},
    {".weight_g_idx", kAsOthers, false, nullptr},
};
constexpr QuantCompanion kPackedBytes[] = {
    {".weight_scale", kAlways, true, scale_of_nvfp4},
    {".weight_global_scale", kAsOthers, true, nullptr},
    {".input_global_scale", kAsOthers, true, nullptr},
};
constexpr QuantCompanion kGrouped[] = {
    {".scales", kAlways, true, scales_of_groups},
    {".qzeros", kAlways, false, zeros_of_groups},
    {".g_idx", kAsOthers, false, one_per_row_of_gptq},
};
constexpr QuantCompanion kNf4[] = {
    {".weight.absmax", kAlways, false, absmax_of_blocks},
    {".weight.quant_map", kAlways, false, nullptr},
    {".weight.quant_state.bitsandbytes__nf4|.weight.quant_state.bitsandbytes__fp4", kAlways, false,
     nullptr},
    {".weight.nested_absmax", kOfBytes, true, nullptr},
    {".weight.nested_quant_map", kOfBytes, false, nullptr},
};
constexpr QuantCompanion kInt8Rows[] = {
    {".SCB", kAlways, true, one_per_row},
    {".weight_format", kAsOthers, false, nullptr},
};
constexpr QuantCompanion kMxBlocks[] = {{"_scales", kAlways, false, scale_of_mx_blocks}};
constexpr QuantCompanion kMxFp8[] = {
    {".weight_scale|.weight_scale_inv", kAlways, false, scale_of_mxfp8},
};
constexpr QuantCompanion kMxFp4[] = {{".weight_scale", kAlways, false, scale_of_mxfp4}};
constexpr QuantCompanion kTwoLevels[] = {
    {".weight_scale", kAlways, true, scale_of_nvfp4},
    {".weight_scale_2", kAlways, true, single_number},
    {".input_scale", kAsOthers, true, nullptr},
};
constexpr QuantCompanion kTwoLevelsParameter[] = {
    {"_weight_scale", kAlways, true, scale_of_nvfp4},
    {"_weight_scale_2", kAlways, true, single_number},
    {"_input_scale", kAsOthers, true, nullptr},
};
// torchao's names for the parts of a parameter W: _W_qdata, _W_scale in safetensors; W.qdata and
// W.scale where it was saved with its class, by torch.save or DCP.
constexpr QuantCompanion kTorchao[] = {
    {"_scale|.scale", kAsOthers, true, nullptr},
    {"_zero_point|.zero_point", kAsOthers, false, nullptr},
};
constexpr QuantCompanion kTorchaoMxFp8[] = {{"_scale|.scale", kAlways, false, scale_of_mxfp8}};
constexpr QuantCompanion kTorchaoMxFp4[] = {{"_scale|.scale", kAlways, false, scale_of_mxfp4}};
// No factor of elements: scales in the order of a GPU kernel are padded with zeros.
constexpr QuantCompanion kTorchaoNvFp4[] = {
    {"_scale|.scale", kAlways, false, scale_of_nvfp4},
    {"_per_tensor_scale|.per_tensor_scale", kAsOthers, true, nullptr},
    {"_act_per_tensor_scale|.act_per_tensor_scale", kAsOthers, true, nullptr},
};
constexpr QuantCompanion kTorchaoInt4[] = {
    {"_scale|.scale", kAlways, true, one_per_group_and_row},
    {"_zero_point|.zero_point", kAlways, false, one_per_group_and_row},
    {"_act_pre_scale|.act_pre_scale", kAsOthers, true, nullptr},
};
constexpr QuantCompanion kTorchaoTiles[] = {
    {"_scale_and_zero|.scale_and_zero", kAlways, false, scale_and_zero_of_tiles},
    {"_act_pre_scale|.act_pre_scale", kAsOthers, true, nullptr},
};
// quanto splits NAME.weight into NAME.weight._data and companions; input_scale and output_scale are
// of activations.
constexpr QuantCompanion kQuanto[] = {
    {"._scale", kAlways, true, nullptr},
    {"._shift", kAsOthers, false, nullptr},
};
constexpr QuantCompanion kMlx[] = {
    {".scales", kAlways, true, scales_of_mlx},
    {".biases", kOfFloats, false, scales_of_mlx},
};

// llama.cpp multiplies the products of an NVFP4 weight by the number next to it, or by one number
// per expert. Its own quantiser writes blocks without such a number.
constexpr QuantCompanion kGgufNvFp4[] = {
    {".scale", kOptional, true, nullptr},
    {".input_scale", kOptional, true, nullptr},
};

constexpr QuantScheme kSchemes[] = {
    {.title = "NVFP4",
     .methods = "gguf",
     .weight = ".weight",
     .is_weight = is_float32,
     .companions = kGgufNvFp4,
     .marker = ".scale",
     .codec = "GGUF NVFP4"},
    {"bitsandbytes 4-bit", "bitsandbytes", ".weight", is_byte_column, kNf4, ".weight.absmax",
     QuantForm::kNf},
    {"bitsandbytes int8", "bitsandbytes", ".weight", is_int8_matrix, kInt8Rows, ".SCB",
     QuantForm::kInt8Rows},
    {"NVFP4", "modelopt", ".weight", is_bytes, kTwoLevels, ".weight_scale_2", QuantForm::kTwoLevels,
     is_nvfp4},
    {"NVFP4", "modelopt", "", is_bytes, kTwoLevelsParameter, "_weight_scale_2",
     QuantForm::kTwoLevels, is_nvfp4},
    {"MXFP4", "modelopt|quark", ".weight", is_bytes, kMxFp4, {}, QuantForm::kMxRows, is_mxfp4},
    {"8-bit",
     "fp8|compressed-tensors|modelopt|fbgemm_fp8",
     ".weight",
     is_bytes,
     kScaled,
     {},
     QuantForm::kScaledBytes,
     is_float_scale},
    {"MXFP8",
     "compressed-tensors|modelopt",
     ".weight",
     is_float8,
     kMxFp8,
     {},
     QuantForm::kMx8,
     is_mxfp8},
    {"MXFP8",
     "torchao",
     "_qdata",
     is_float8,
     kTorchaoMxFp8,
     {},
     QuantForm::kMxOfTorchao,
     has_exponent_scale},
    {"MXFP8",
     "torchao",
     ".qdata",
     is_float8,
     kTorchaoMxFp8,
     {},
     QuantForm::kMxOfTorchao,
     has_exponent_scale},
    {"MXFP4",
     "torchao",
     "_qdata",
     is_bytes,
     kTorchaoMxFp4,
     {},
     QuantForm::kMxOfTorchao,
     has_exponent_scale},
    {"MXFP4",
     "torchao",
     ".qdata",
     is_bytes,
     kTorchaoMxFp4,
     {},
     QuantForm::kMxOfTorchao,
     has_exponent_scale},
    {"NVFP4",
     "torchao",
     "_qdata",
     is_bytes,
     kTorchaoNvFp4,
     {},
     QuantForm::kNvOfTorchao,
     has_float8_scale},
    {"NVFP4",
     "torchao",
     ".qdata",
     is_bytes,
     kTorchaoNvFp4,
     {},
     QuantForm::kNvOfTorchao,
     has_float8_scale},
    {"int4 tiles", "torchao", "_qdata", is_int4_tiles, kTorchaoTiles, "_scale_and_zero",
     QuantForm::kInt4Tiles},
    {"int4 tiles", "torchao", ".qdata", is_int4_tiles, kTorchaoTiles, ".scale_and_zero",
     QuantForm::kInt4Tiles},
    {"int4",
     "torchao",
     "_qdata",
     is_byte_or_int8,
     kTorchaoInt4,
     {},
     QuantForm::kInt4,
     has_scale_of_groups_first},
    {"int4",
     "torchao",
     ".qdata",
     is_byte_or_int8,
     kTorchaoInt4,
     {},
     QuantForm::kInt4,
     has_scale_of_groups_first},
    {"int4",
     "torchao",
     "_qdata",
     is_int32_matrix,
     kTorchaoInt4,
     {},
     QuantForm::kInt4,
     has_scale_of_groups_first},
    {"int4",
     "torchao",
     ".qdata",
     is_int32_matrix,
     kTorchaoInt4,
     {},
     QuantForm::kInt4,
     has_scale_of_groups_first},
    {"torchao", "torchao", "_qdata", is_packed_or_bytes, kTorchao, "_scale", QuantForm::kAffine},
    {"torchao", "torchao", ".qdata", is_packed_or_bytes, kTorchao, ".scale", QuantForm::kAffine},
    {"quanto", "quanto", "._data", is_packed_or_bytes, kQuanto, "._scale", QuantForm::kAffine},
    {"8-bit",
     "fp8|compressed-tensors|modelopt|fbgemm_fp8",
     ".weight",
     is_float8_or_int8,
     kScaled,
     {}},
    {"8-bit", "fp8|compressed-tensors", "", is_float8_or_int8, kScaledParameter, {}},
    {"packed", "compressed-tensors", ".weight_packed", is_int32, kPacked, {}, QuantForm::kPacked},
    {"packed MXFP4",
     "compressed-tensors",
     ".weight_packed",
     is_bytes,
     kMxFp4,
     {},
     QuantForm::kMxRows,
     is_mxfp4},
    {"packed FP4",
     "compressed-tensors",
     ".weight_packed",
     is_bytes,
     kPackedBytes,
     {},
     QuantForm::kTwoLevelsDivided},
    {"grouped", "gptq|awq", ".qweight", is_int32, kGrouped, {}, QuantForm::kGrouped},
    {"MXFP4", "mxfp4", "_blocks", is_bytes, kMxBlocks, {}, QuantForm::kMx},
    {"MLX", "mlx", ".weight", is_uint32, kMlx, {}, QuantForm::kMlx},
};

}  // namespace

Extents shape_of_groups(ExtentsView elements, std::int64_t group) {
  Extents shape(elements.begin(), elements.end());
  if (!shape.empty()) shape.back() = ceil_div(shape.back(), group);
  return shape;
}

bool is_swizzled(ExtentsView scale, ExtentsView exact) {
  if (exact.size() < 2) return false;
  Extents tiles(exact.begin(), exact.end());
  std::int64_t &rows = tiles[tiles.size() - 2], &groups = tiles.back();
  rows = ceil_div(rows, kSwizzledRows) * 32;
  groups = ceil_div(groups, kSwizzledGroups) * 16;
  return same(scale, tiles) || (scale.size() == 1 && volume(tiles) == scale[0]);
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
      *count > kMost)
    return std::nullopt;
  Int4Tiles tiles;
  tiles.elements = copy_of(stored.first(at));
  tiles.elements.push_back(stored[at] * Int4Tiles::kRows);
  tiles.elements.push_back(stored[at + 1] * words * Int4Tiles::kColumnsOfWord);
  tiles.words = words;
  return tiles;
}

std::span<const QuantScheme> quant_schemes() {
  return kSchemes;
}

}  // namespace shw
