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
  return is_padded(companion, exact) ? std::nullopt : Shape(std::move(exact));
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
bool is_float_scale(const Checkpoint& c, TensorId, TensorId scale) {
  const Dtype dtype = c.dtype(scale);
  return dtype == Dtype::kFloat32 || dtype == Dtype::kBfloat16 || dtype == Dtype::kFloat16;
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
// torchao splits NAME.weight into NAME._weight_qdata and NAME._weight_scale.
constexpr QuantCompanion kTorchaoMxFp8[] = {{"_scale", kAlways, false, scale_of_mxfp8}};
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
// transformers' names for a parameter W: _W_qdata, _W_scale, _W_zero_point.
constexpr QuantCompanion kTorchao[] = {
    {"_scale", kAsOthers, true, nullptr},
    {"_zero_point", kAsOthers, false, nullptr},
};
// The attributes of a parameter that was saved with its class, by torch.save or DCP.
constexpr QuantCompanion kTorchaoAttributes[] = {
    {".scale", kAsOthers, true, nullptr},
    {".zero_point", kAsOthers, false, nullptr},
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

constexpr QuantScheme kSchemes[] = {
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
    {"MXFP8", "torchao", "_qdata", is_float8, kTorchaoMxFp8, {}, QuantForm::kMxSwizzled, is_mxfp8},
    {"torchao", "torchao", "_qdata", is_packed_or_bytes, kTorchao, "_scale", QuantForm::kAffine},
    {"torchao", "torchao", ".qdata", is_packed_or_bytes, kTorchaoAttributes, ".scale",
     QuantForm::kAffine},
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

bool names_method(const QuantScheme& scheme, const std::optional<QuantConfig>& config) {
  if (!config) return false;
  const auto methods = alternatives_of(scheme.methods);
  return std::find(methods.begin(), methods.end(), config->method) != methods.end();
}

bool is_companion_ending(const QuantScheme& scheme, std::string_view fqn) {
  for (const QuantCompanion& companion : scheme.companions) {
    for (std::string_view ending : alternatives_of(companion.endings)) {
      if (fqn.ends_with(ending)) return true;
    }
  }
  return false;
}

QuantPair pair_of(const Checkpoint& c, const QuantScheme& scheme, TensorId weight) {
  QuantPair pair{weight, std::string(c.fqn(weight)), {}, {}};
  pair.stem.resize(pair.stem.size() - scheme.weight.size());
  for (const QuantCompanion& companion : scheme.companions) {
    std::optional<TensorId> found;
    std::string_view under;
    for (std::string_view ending : alternatives_of(companion.endings)) {
      auto there = found ? std::nullopt : c.find(pair.stem + std::string(ending));
      if (!there) continue;
      found = there;
      under = ending;
    }
    pair.beside.push_back(found);
    pair.ending.push_back(under);
  }
  return pair;
}

bool can_be_weight(const CheckInput& input, const QuantScheme& scheme, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  const std::string_view fqn = c.fqn(tensor);
  const bool has_ending =
      fqn.ends_with(scheme.weight) && (!scheme.weight.empty() || !fqn.ends_with(".weight"));
  return has_ending && !parse_state_fqn(fqn) &&
         scheme.is_weight(c.dtype(tensor), c.shape(tensor)) && !is_companion_ending(scheme, fqn);
}

// A scheme is in use if a weight has its marker or the config names it. If only its scale
// distinguishes a weight, it belongs to the scheme of that scale; without companions, to the first
// scheme in use.
QuantFamily family_of(const CheckInput& input, const QuantScheme& scheme, bool is_said,
                      const std::set<TensorId>& taken) {
  const Checkpoint& c = input.checkpoint;
  QuantFamily family{&scheme, is_said, {}, {}};
  std::vector<QuantPair> without_any;
  std::size_t marked = 0, of_others = 0;
  for (TensorId tensor : each_tensor(input)) {
    if (taken.contains(tensor) || !can_be_weight(input, scheme, tensor)) continue;
    QuantPair pair = pair_of(c, scheme, tensor);
    const bool has_any = std::any_of(pair.beside.begin(), pair.beside.end(),
                                     [](const auto& one) { return one.has_value(); });
    if (scheme.is_of_scale != nullptr && !has_any) {
      without_any.push_back(std::move(pair));
      continue;
    }
    if (scheme.is_of_scale != nullptr && pair.beside[0] &&
        !scheme.is_of_scale(c, tensor, *pair.beside[0])) {
      ++of_others;
      continue;
    }
    const bool has_marker =
        scheme.marker.empty() || c.find(pair.stem + std::string(scheme.marker)).has_value();
    marked += has_marker && has_any ? 1 : 0;
    family.pairs.push_back(std::move(pair));
  }
  if (marked > 0 || (is_said && of_others == 0 && !scheme.marker.empty()))
    std::ranges::move(without_any, std::back_inserter(family.pairs));
  if (marked == 0 && !is_said) family.pairs.clear();
  return family;
}

// True for name suffixes that only quantised checkpoints have.
bool is_of_quantised_alone(std::string_view ending) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".weight_scale_inv", ".qzeros", ".weight.quant_map", ".SCB", ".weight_scale_2"});
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// Suffixes that other tensors have too: logit_scale of CLIP, the scale of a norm.
bool is_common_ending(std::string_view ending) {
  return ending == ".scale" || ending == "_scale";
}

void add_orphans(const CheckInput& input, const std::set<TensorId>& taken, QuantFamily& family) {
  const Checkpoint& c = input.checkpoint;
  for (TensorId tensor : each_tensor(input)) {
    const std::string_view fqn = c.fqn(tensor);
    for (const QuantCompanion& companion : family.scheme->companions) {
      if (companion.need != CompanionNeed::kAlways) continue;
      for (std::string_view ending : alternatives_of(companion.endings)) {
        const bool can_tell =
            !family.pairs.empty() || family.is_said || is_of_quantised_alone(ending);
        if (!can_tell || is_common_ending(ending) || !fqn.ends_with(ending) ||
            fqn.size() == ending.size())
          continue;
        std::string weight(fqn.substr(0, fqn.size() - ending.size()));
        weight += family.scheme->weight;
        const auto there = c.find(weight);
        const bool is_weight = there && family.scheme->is_weight(c.dtype(*there), c.shape(*there));
        const bool is_taken = there && taken.contains(*there);
        if (!is_weight && !is_taken) family.orphans.push_back({tensor, std::move(weight), there});
      }
    }
  }
}

}  // namespace

Extents shape_of_groups(ExtentsView elements, std::int64_t group) {
  Extents shape(elements.begin(), elements.end());
  if (!shape.empty()) shape.back() = ceil_div(shape.back(), group);
  return shape;
}

std::vector<std::string_view> alternatives_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find('|');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<QuantFamily> quant_families(const CheckInput& input,
                                        const std::optional<QuantConfig>& config) {
  std::vector<QuantFamily> families;
  std::set<TensorId> taken;
  for (const QuantScheme& scheme : kSchemes) {
    QuantFamily family = family_of(input, scheme, names_method(scheme, config), taken);
    for (const QuantPair& pair : family.pairs) taken.insert(pair.weight);
    families.push_back(std::move(family));
  }
  std::set<TensorId> told;  // reported or already paired in any scheme
  for (const QuantFamily& family : families) {
    for (const QuantPair& pair : family.pairs)
      for (const auto& one : pair.beside)
        if (one) told.insert(*one);
  }
  for (QuantFamily& family : families) {
    add_orphans(input, taken, family);
    std::erase_if(family.orphans,
                  [&](const auto& orphan) { return !told.insert(orphan.companion).second; });
  }
  std::erase_if(families, [](const QuantFamily& family) {
    return family.pairs.empty() && family.orphans.empty();
  });
  return families;
}

}  // namespace shw
