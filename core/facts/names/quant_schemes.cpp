#include "core/facts/names/quant_schemes.h"

namespace shw {
namespace {

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
// GPTQModel packs in words of 8 to 64 bits ("pack_dtype").
bool is_integer(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && (dtype == Dtype::kInt8 || dtype == Dtype::kInt16 ||
                               dtype == Dtype::kInt32 || dtype == Dtype::kInt64);
}
bool is_bytes(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kUint8;
}
bool is_byte_column(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && shape[1] == 1 && dtype == Dtype::kUint8;
}
bool is_float_column(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && shape[1] == 1 && is_allowed_dtype(dtype, CompanionDtypes::kFloats);
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
// HQQ's packed codes, and the same as bytes of floats (view_as_float).
bool is_hqq_codes(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && (dtype == Dtype::kUint8 || dtype == Dtype::kInt32);
}
bool is_float_matrix(Dtype dtype, ExtentsView shape) {
  return shape.size() == 2 && is_allowed_dtype(dtype, CompanionDtypes::kFloats);
}
bool is_uint32(Dtype dtype, ExtentsView shape) {
  return shape.size() >= 2 && dtype == Dtype::kUint32;
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
using enum CompanionDtypes;
constexpr CompanionDtypes kScaleDtypes = kFloats | kExponents, kIndices = kInt32s | kInt64s,
                          kPoints = kInt8s | kInt32s | kInt64s | kFloats;
constexpr QuantCompanion kScaled[] = {
    {".weight_scale_inv|.weight_scale|.scale_weight|.scale", kAlways, true, byte_scale_shape,
     kScaleDtypes},
    {".input_scale|.activation_scale", kAsOthers, true, nullptr, kFloats},
};
// Names for fused experts, which are parameters and not modules.
constexpr QuantCompanion kScaledParameter[] = {
    {"_scale_inv|_scale", kAlways, true, byte_scale_shape, kScaleDtypes},
};
constexpr QuantCompanion kPacked[] = {
    {".weight_scale", kAlways, true, packed_scale_shape, kFloats},
    {".weight_shape", kAlways, false, two_numbers_shape, kIndices},
    {".weight_zero_point", kAsOthers, false, nullptr, kInt8s | kInt32s},
    {".weight_g_idx", kAsOthers, false, nullptr, kInt32s},
};
constexpr QuantCompanion kPackedBytes[] = {
    {".weight_scale", kAlways, true, nvfp4_scale_shape, kFloat8s},
    {".weight_global_scale", kAlways, true, single_number_shape, kFloats},
    {".input_global_scale", kAsOthers, true, nullptr, kFloats},
};
constexpr QuantCompanion kGrouped[] = {
    {".scales", kAlways, true, group_scales_shape, kFloats},
    {".qzeros", kAlways, false, group_zeros_shape, kInt8s | kInt16s | kInt32s | kInt64s},
    {".g_idx", kAsOthers, false, gptq_row_index_shape, kInt32s},
};
constexpr QuantCompanion kNf4[] = {
    {".weight.absmax", kAlways, false, block_absmax_shape, kFloats | kBytes},
    {".weight.quant_map", kAlways, false, nf4_table_shape, kFloats},
    {".weight.quant_state.bitsandbytes__nf4|.weight.quant_state.bitsandbytes__fp4", kAlways, false,
     nullptr, kBytes},
    {".weight.nested_absmax", kOfBytes, true, nullptr, kFloats},
    {".weight.nested_quant_map", kOfBytes, false, byte_table_shape, kFloats},
};
constexpr QuantCompanion kInt8Rows[] = {
    {".SCB", kAlways, true, per_row_shape, kFloats},
    {".weight_format", kAsOthers, false, nullptr, kAny},
};
constexpr QuantCompanion kMxBlocks[] = {
    {"_scales", kAlways, false, mx_block_scale_shape, kExponents},
};
constexpr QuantCompanion kMxFp8[] = {
    {".weight_scale|.weight_scale_inv", kAlways, false, mxfp8_scale_shape, kExponents},
};
constexpr QuantCompanion kMxFp4[] = {
    {".weight_scale", kAlways, false, mxfp4_scale_shape, kExponents},
};
constexpr QuantCompanion kTwoLevels[] = {
    {".weight_scale", kAlways, true, nvfp4_scale_shape, kFloat8s},
    {".weight_scale_2", kAlways, true, single_number_shape, kFloats},
    {".input_scale", kAsOthers, true, nullptr, kFloats},
};
constexpr QuantCompanion kTwoLevelsParameter[] = {
    {"_weight_scale", kAlways, true, nvfp4_scale_shape, kFloat8s},
    {"_weight_scale_2", kAlways, true, single_number_shape, kFloats},
    {"_input_scale", kAsOthers, true, nullptr, kFloats},
};
// torchao's names for the parts of a parameter W: _W_qdata, _W_scale in safetensors; W.qdata and
// W.scale where it was saved with its class, by torch.save or DCP. Before torchao 0.15:
// W.tensor_impl.int_data or packed_weight.
constexpr QuantCompanion kTorchao[] = {
    {"_scale|.scale", kAsOthers, true, nullptr, kFloats},
    {"_zero_point|.zero_point", kAsOthers, false, nullptr, kPoints},
    {"_act_pre_scale|.act_pre_scale", kOptional, true, nullptr, kFloats},
};
constexpr QuantCompanion kTorchaoMxFp8[] = {
    {"_scale|.scale", kAlways, false, mxfp8_scale_shape, kExponents},
};
constexpr QuantCompanion kTorchaoMxFp4[] = {
    {"_scale|.scale", kAlways, false, mxfp4_scale_shape, kExponents},
};
// No factor of elements: scales in the order of a GPU kernel are padded with zeros.
constexpr QuantCompanion kTorchaoNvFp4[] = {
    {"_scale|.scale", kAlways, false, nvfp4_scale_shape, kFloat8s},
    {"_per_tensor_scale|.per_tensor_scale", kAsOthers, true, nullptr, kFloats},
    {"_act_per_tensor_scale|.act_per_tensor_scale", kAsOthers, true, nullptr, kFloats},
};
constexpr QuantCompanion kTorchaoInt4[] = {
    {"_scale|.scale", kAlways, true, per_group_and_row_shape, kFloats},
    {"_zero_point|.zero_point", kAlways, false, per_group_and_row_shape, kInt8s | kFloats},
    {"_act_pre_scale|.act_pre_scale", kOptional, true, nullptr, kFloats},
};
constexpr QuantCompanion kTorchaoTiles[] = {
    {"_scale_and_zero|.scale_and_zero", kAlways, false, tile_scale_and_zero_shape, kFloats},
    {"_act_pre_scale|.act_pre_scale", kOptional, true, nullptr, kFloats},
};
// quanto splits NAME.weight into NAME.weight._data and companions; input_scale and output_scale are
// of activations.
constexpr QuantCompanion kQuanto[] = {
    {"._scale", kAlways, true, nullptr, kFloats},
    {"._shift", kAsOthers, false, nullptr, kPoints | kBytes},
};
// What transformers' HqqConfig saves for each HQQLinear. hqq's own files (qmodel.pt) have the
// settings as plain values. Older ones quantise scales and zero points, or stack them.
constexpr QuantCompanion kHqq[] = {
    {".scale|.zero_scale|.scale_q|.meta.scale|.meta.zero_scale|.meta.scale_q", kAlways, true,
     nullptr, kFloats | kBytes},
    {".zero|.zero_scale|.zero_q|.meta.zero|.meta.zero_scale|.meta.zero_q", kAlways, false, nullptr,
     kFloats | kBytes},
    {".shape", kAsOthers, false, nullptr, kIndices},
    {".nbits", kAsOthers, false, nullptr, kInt32s | kInt64s | kFloats},
    {".axis", kAsOthers, false, nullptr, kIndices},
    {".group_size", kAsOthers, false, nullptr, kIndices},
    {".packing", kAsOthers, false, nullptr, kBytes},
    {".view_as_float", kAsOthers, false, nullptr, kBytes},
    {".compute_dtype", kAsOthers, false, nullptr, kBytes},
    {".unpack_view_dtype", kAsOthers, false, nullptr, kBytes},
    {".quant_scale", kAsOthers, false, nullptr, kBytes},
    {".quant_zero", kAsOthers, false, nullptr, kBytes},
    {".channel_wise", kAsOthers, false, nullptr, kBytes},
    {".optimize", kAsOthers, false, nullptr, kBytes},
    {".round_zero", kAsOthers, false, nullptr, kBytes},
    {".offload_meta", kAsOthers, false, nullptr, kBytes},
    {".encoded_state_dict", kAsOthers, false, nullptr, kBytes},
    {".stores_quant_config", kAsOthers, false, nullptr, kBytes},
    {".meta_scale.scale|.meta.meta_scale.scale", kOptional},
    {".meta_scale.zero|.meta.meta_scale.zero", kOptional},
    {".meta_zero.scale|.meta.meta_zero.scale", kOptional},
    {".meta_zero.zero|.meta.meta_zero.zero", kOptional},
};
// One number per matrix, which AutoBitLinear multiplies by and BitLinear divides by.
constexpr QuantCompanion kTernary[] = {
    {".weight_scale", kAlways, true, single_number_shape, kFloats},
};
constexpr QuantCompanion kMlx[] = {
    {".scales", kAlways, true, mlx_scales_shape, kFloats | kExponents | kFloat8s},
    {".biases", kOfFloats, false, mlx_scales_shape, kFloats},
};

// llama.cpp multiplies the products of an NVFP4 weight by the number next to it, or by one number
// per expert. Its own quantiser writes blocks without such a number.
constexpr QuantCompanion kGgufNvFp4[] = {
    {".scale", kOptional, true, nullptr, kFloats},
    {".input_scale", kOptional, true, nullptr, kFloats},
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
    // bnb_4bit_quant_storage: codes in the bytes of floats, so that FSDP can shard them.
    {.title = "bitsandbytes 4-bit",
     .methods = "bitsandbytes",
     .weight = ".weight",
     .is_weight = is_float_column,
     .companions = kNf4,
     .marker = ".weight.absmax",
     .form = QuantForm::kNf,
     .needs_marker = true},
    {"bitsandbytes int8", "bitsandbytes", ".weight", is_int8_matrix, kInt8Rows, ".SCB",
     QuantForm::kInt8Rows},
    {.title = "BitNet",
     .methods = "bitnet",
     .weight = ".weight",
     .is_weight = is_bytes,
     .companions = kTernary,
     .form = QuantForm::kTernary,
     .needs_config = true},
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
    {"int4 tiles", "torchao", ".packed_weight", is_int4_tiles, kTorchaoTiles, ".scale_and_zero",
     QuantForm::kInt4Tiles},
    {"torchao", "torchao", ".int_data", is_int8_matrix, kTorchao, ".scale", QuantForm::kAffine},
    {"torchao", "torchao", "_qdata", is_packed_or_bytes, kTorchao, "_scale", QuantForm::kAffine},
    {"torchao", "torchao", ".qdata", is_packed_or_bytes, kTorchao, ".scale", QuantForm::kAffine},
    // Two or four codes per byte: no file says which shape the groups make.
    {"quanto", "quanto", "._data._data", is_bytes, kQuanto, "._scale", QuantForm::kAffine},
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
    {"grouped", "gptq|awq", ".qweight", is_integer, kGrouped, {}, QuantForm::kGrouped},
    {"HQQ", "hqq", ".W_q", is_hqq_codes, kHqq, ".scale", QuantForm::kHqq},
    // A projection of queries may be a parameter of this name. In qmodel.pt
    // the settings are no tensors.
    {.title = "HQQ",
     .methods = "hqq",
     .weight = ".W_q",
     .is_weight = is_float_matrix,
     .companions = kHqq,
     .marker = ".packing",
     .form = QuantForm::kHqq,
     .needs_marker = true},
    {.title = "HQQ",
     .methods = "hqq",
     .weight = ".W_q",
     .is_weight = is_float_matrix,
     .companions = kHqq,
     .marker = ".zero",
     .form = QuantForm::kHqq,
     .needs_marker = true},
    {"MXFP4", "mxfp4", "_blocks", is_bytes, kMxBlocks, {}, QuantForm::kMx},
    {"MLX", "mlx", ".weight", is_uint32, kMlx, {}, QuantForm::kMlx},
};

}  // namespace

bool is_allowed_dtype(Dtype dtype, CompanionDtypes dtypes) {
  const auto has = [&](CompanionDtypes kind) {
    return (static_cast<unsigned>(dtypes) & static_cast<unsigned>(kind)) != 0;
  };
  switch (dtype) {
    case Dtype::kFloat32:
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
      return has(kFloats);
    case Dtype::kFloat8E8m0fnu:
      return has(kExponents);
    case Dtype::kFloat8E4m3fn:
      return has(kFloat8s);
    case Dtype::kUint8:
      return has(kExponents) || has(kFloat8s) || has(kBytes);
    case Dtype::kInt8:
      return has(kInt8s);
    case Dtype::kInt16:
      return has(kInt16s);
    case Dtype::kInt32:
      return has(kInt32s);
    case Dtype::kInt64:
      return has(kInt64s);
    default:
      return dtypes == kAny;
  }
}

std::span<const QuantScheme> quant_schemes() {
  return kSchemes;
}

}  // namespace shw
