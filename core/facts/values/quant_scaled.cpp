#include "core/facts/values/quant_scaled.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/facts/values/quant_mx.h"
#include "core/tensor/convert.h"

namespace shw {
namespace {

constexpr std::int64_t kMinBlock = 8;

// Number of elements per scale along an axis with `scales` scales, of the sizes that blocks and
// groups have; nullopt if there is none, as where scales were cut off.
std::optional<std::int64_t> elements_per_scale(std::int64_t extent, std::int64_t scales,
                                               std::optional<std::int64_t> said) {
  if (scales < 1 || extent < 1) return std::nullopt;
  if (said && *said > 0) return ceil_divide(extent, *said) == scales ? said : std::nullopt;
  if (scales == 1) return extent;
  if (scales == extent) return 1;
  const std::int64_t exact = extent / scales;
  if (extent % scales == 0 && exact >= kMinBlock && (exact & (exact - 1)) == 0) return exact;
  for (std::int64_t step : {128, 64, 32, 16, 256})
    if (ceil_divide(extent, step) == scales) return step;
  return std::nullopt;
}

// MX scales of rows, which a checkpoint may have besides block-scaled weights (byte_scale_shape).
bool are_row_mx_scales(ExtentsView weight, ExtentsView scale) {
  return same(weight.first(weight.size() - 1), scale.first(scale.size() - 1)) &&
         (scale.back() * kMxGroup == weight.back() || scale.back() * kMxGroup / 2 == weight.back());
}

// Elements per scale along each axis of the weight; a scale with fewer axes applies to the first
// ones.
std::optional<Extents> weights_per_scale_of_each_dim(const QuantSource& from, ExtentsView scale) {
  const ExtentsView weight = from.weight();
  const Extents* of_class =
      from.of_class && from.of_class->block ? &*from.of_class->block : nullptr;
  if (volume(scale) == 1) {
    const bool is_of_whole =
        of_class == nullptr || of_class->size() != weight.size() || same(*of_class, weight);
    return is_of_whole ? std::optional(copy_of(weight)) : std::nullopt;
  }
  if (scale.size() > weight.size()) return std::nullopt;
  Extents steps = copy_of(weight);
  for (std::size_t d = 0; d < scale.size(); ++d) {
    std::optional<std::int64_t> said;
    if (of_class != nullptr && of_class->size() == weight.size())
      said = (*of_class)[d];
    else if (from.config.block && scale.size() == weight.size() && d + 2 >= weight.size() &&
             !are_row_mx_scales(weight, scale))
      said = (*from.config.block)[d + 2 - weight.size()];
    const auto step = elements_per_scale(weight[d], scale[d], said);
    if (!step) return std::nullopt;
    steps[d] = *step;
  }
  return steps;
}

struct ScaledWeight {
  TensorId weight{}, scale{};
  Extents steps;                      // elements per scale along each axis of the weight
  std::optional<TensorId> zero = {};  // zero points, with the scale's shape
  float divided_by = 1.0f;
  bool as_bytes = false;
};

// Rows [first, first + count), each element multiplied by the scale of its block.
QuantFloats scaled_rows(const Checkpoint& c, const ScaledWeight& from, std::int64_t first,
                        std::int64_t count) {
  const ExtentsView shape = c.shape(from.weight);
  SHW_TRY(std::vector<float> out,
          read_box_float8(c, from.weight, rows_box(shape, first, count), from.as_bytes));
  // Reads only the scales of these rows, because MXFP8's scales are 1/32 of the weight.
  const std::int64_t first_cell = first / from.steps[0];
  const std::int64_t cell_rows =
      count == 0 ? 0 : (first + count - 1) / from.steps[0] - first_cell + 1;
  const Box box = rows_box(c.shape(from.scale), first_cell, cell_rows);
  SHW_TRY(const std::vector<float> scales, read_box_scales(c, from.scale, box));
  std::vector<float> zeros;
  if (from.zero) {
    SHW_TRY(zeros, read_box_floats(c, *from.zero, box));
  }
  Extents cells;
  for (std::size_t d = 0; d < shape.size(); ++d)
    cells.push_back(ceil_divide(shape[d], from.steps[d]));
  Extents at(shape.size(), 0);
  at[0] = first;
  for (float& element : out) {
    std::int64_t cell = at[0] / from.steps[0] - first_cell;
    for (std::size_t d = 1; d < at.size(); ++d) cell = cell * cells[d] + at[d] / from.steps[d];
    const float factor = scales[static_cast<std::size_t>(cell)];
    if (from.zero) element -= zeros[static_cast<std::size_t>(cell)];
    element *= from.divided_by == 1.0f ? factor : factor * (1.0f / from.divided_by);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < (d == 0 ? first + count : shape[d])) break;
      at[d] = 0;
    }
  }
  return out;
}

DecodedWeight scaled_weight(const QuantSource& from, ScaledWeight scaled) {
  DecodedWeight decoded = from.result(decoded_name(from), copy_of(from.weight()));
  decoded.decode = [checkpoint = from.checkpoint, scaled = std::move(scaled)](std::int64_t first,
                                                                              std::int64_t count) {
    return scaled_rows(*checkpoint, scaled, first, count);
  };
  return decoded;
}

// True if scales divide every axis into equal parts, of which nothing states a size: one per fused
// matrix, as vLLM keeps w13 and qkv.
bool has_one_scale_per_fused_matrix(const QuantSource& from, ExtentsView scale) {
  const ExtentsView weight = from.weight();
  if (from.config.block || (from.of_class && from.of_class->block) || scale.size() > weight.size())
    return false;
  for (std::size_t d = 0; d < scale.size(); ++d)
    if (scale[d] < 1 || weight[d] % scale[d] != 0) return false;
  return true;
}

Result<ScaledWeight> find_scale_steps(const QuantSource& from) {
  const auto scale = from.companion(0);
  if (!scale) return from.unreadable_error("has no scale next to it");
  if (!from.is_float(scale) && !has_exponents(from))
    return from.unfit(fmt::format("has a scale of {}", name(from.c().dtype(*scale))));
  if (from.is_said && from.config.has_scale_per_row && volume(from.c().shape(*scale)) == 1 &&
      from.weight()[0] > 1)
    return from.unfit("has one scale, and its config has one per row");
  auto steps = weights_per_scale_of_each_dim(from, from.c().shape(*scale));
  if (!steps) {
    std::string why = fmt::format("is {}, which its scale of {} does not divide into blocks",
                                  to_text(from.weight()), to_text(from.c().shape(*scale)));
    return has_one_scale_per_fused_matrix(from, from.c().shape(*scale))
               ? from.unreadable_error(std::move(why))
               : from.unfit(std::move(why));
  }
  return ScaledWeight{from.pair.weight, *scale, std::move(*steps), {}};
}

}  // namespace

std::string decoded_name(const QuantSource& from) {
  const std::string fqn(from.c().fqn(from.pair.weight));
  if (fqn.ends_with(".qdata")) return from.pair.stem;
  if (fqn.ends_with(".int_data") || fqn.ends_with(".packed_weight")) {
    std::string_view name = from.pair.stem;
    for (const std::string_view inner : {".tensor_impl", ".original_weight_tensor"})
      if (name.ends_with(inner)) name.remove_suffix(inner.size());
    return std::string(name);
  }
  const std::size_t dot = from.pair.stem.rfind('.') + 1;
  const bool is_of_torchao =
      fqn.ends_with("_qdata") && std::string_view(from.pair.stem).substr(dot).starts_with('_');
  if (!is_of_torchao) return fqn;
  return from.pair.stem.substr(0, dot) + from.pair.stem.substr(dot + 1);
}

QuantFloats read_box_float8(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                            bool as_bytes) {
  if (!as_bytes) return read_box_floats(checkpoint, tensor, box);
  SHW_TRY(const Bytes codes, read_box_bytes(checkpoint, tensor, box));
  std::vector<float> out(codes.size());
  std::ranges::transform(codes, out.begin(), [](std::byte code) {
    return from_narrow<kE4m3fnForm>(std::to_integer<std::uint32_t>(code));
  });
  return out;
}

Result<std::vector<float>> read_box_scales(const Checkpoint& checkpoint, TensorId scale,
                                           const Box& box) {
  const Dtype dtype = checkpoint.dtype(scale);
  if (dtype != Dtype::kUint8 && dtype != Dtype::kFloat8E8m0fnu)
    return read_box_floats(checkpoint, scale, box);
  SHW_TRY(const Bytes codes, read_box_bytes(checkpoint, scale, box));
  std::vector<float> out(codes.size());
  std::ranges::transform(codes, out.begin(), [](std::byte code) {
    return from_narrow<kE8m0Form>(std::to_integer<std::uint32_t>(code));
  });
  return out;
}

Result<DecodedWeight> scaled_decoder(const QuantSource& from, std::optional<TensorId> zero,
                                     float divided_by) {
  SHW_TRY(ScaledWeight scaled, find_scale_steps(from));
  if (zero && !same(from.c().shape(*zero), from.c().shape(scaled.scale)))
    return from.unfit("has zero points that do not fit its scales");
  scaled.zero = zero;
  scaled.divided_by = divided_by;
  return scaled_weight(from, std::move(scaled));
}

Result<DecodedWeight> scaled_codes_decoder(const QuantSource& from) {
  const Dtype dtype = from.c().dtype(from.pair.weight);
  const bool is_int = dtype == Dtype::kInt8;
  const bool is_of_fp8 = from.config.method == "fp8" || from.config.method == "fbgemm_fp8";
  const auto has_floats = is_of_fp8 ? std::optional(true) : from.config.has_float_weights;
  if (from.is_said && has_floats && *has_floats == is_int)
    return from.unfit(fmt::format("is {}, and its config has {}", name(dtype),
                                  is_int ? "floating-point numbers" : "integers"));
  if (from.is_said && !is_int && dtype != Dtype::kFloat8E4m3fn)
    return from.unfit(fmt::format("is {}, and {} has {}", name(dtype), from.config.method,
                                  name(Dtype::kFloat8E4m3fn)));
  return scaled_decoder(from, std::nullopt, 1.0f);
}

Result<DecodedWeight> scaled_bytes_decoder(const QuantSource& from) {
  if (!from.is_said)
    return from.unreadable_error(
        "is uint8 with a scale as FP8 has it, and no config.json says that its bytes are FP8");
  if (from.config.has_float_weights == false)
    return from.unfit("is uint8, and its config has int8");
  SHW_TRY(ScaledWeight scaled, find_scale_steps(from));
  scaled.as_bytes = true;
  return scaled_weight(from, std::move(scaled));
}

Result<DecodedWeight> mx8_decoder(const QuantSource& from) {
  const ExtentsView weight = from.weight();
  if (from.c().dtype(from.pair.weight) != Dtype::kFloat8E4m3fn)
    return from.unfit(fmt::format("is {}, and MXFP8 has {}", name(from.c().dtype(from.pair.weight)),
                                  name(Dtype::kFloat8E4m3fn)));
  const auto scale = from.companion(0);
  if (!scale) return from.unreadable_error("has no scale next to it");
  const Extents expected = shape_of_groups(weight, kMxGroup);
  if (has_kernel_scale_layout(from.c().shape(*scale), weight, kMxGroup) &&
      !same(from.c().shape(*scale), expected))
    return from.unreadable_error("has scales in a kernel-specific order, which is not decoded");
  if (!same(from.c().shape(*scale), expected))
    return from.unfit(fmt::format("is {}, and its scale is {}, not {}: one for each {} columns",
                                  to_text(weight), to_text(from.c().shape(*scale)),
                                  to_text(expected), kMxGroup));
  ScaledWeight scaled{from.pair.weight, *scale, Extents(weight.size(), 1), {}};
  scaled.steps.back() = kMxGroup;
  return scaled_weight(from, std::move(scaled));
}

}  // namespace shw
