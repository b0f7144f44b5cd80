#include "core/facts/values/quant_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "core/facts/values/quant_hqq.h"
#include "core/facts/values/quant_mx.h"
#include "core/facts/values/quant_numbers.h"
#include "core/facts/values/quant_packed.h"
#include "core/facts/values/quant_scaled.h"
#include "core/facts/values/quant_torchao.h"
#include "core/formats/table.h"

namespace shw {
namespace {

// Weights with 8-bit elements; int8 with exponents as scales is FP4, two numbers per byte.
Result<DecodedWeight> byte_decoder(const QuantSource& from) {
  const bool is_fp4 = from.c().dtype(from.pair.weight) == Dtype::kInt8 && has_exponents(from);
  return is_fp4 ? mx_rows_decoder(from, std::string(from.c().fqn(from.pair.weight)))
                : scaled_codes_decoder(from);
}

// Stacked experts of NVFP4 whose groups and pairs of numbers are along the inputs.
Result<DecodedWeight> nvfp4_experts_decoder(const QuantSource& from) {
  const Extents shape = copy_of(from.weight());
  const TensorId scale = *from.companion(0), one = *from.companion(1);
  if (volume(from.c().shape(one)) != 1 || !from.is_float(one))
    return from.unfit("has no per-tensor scale");
  const bool as_bytes = from.c().dtype(scale) == Dtype::kUint8;
  DecodedWeight decoded = from.result(from.pair.stem, {shape[0], shape[1] * 2, shape[2]});
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale, one, shape,
                    as_bytes](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes bytes, read_box_bytes(c, weight, rows_box(shape, first, count)));
    SHW_TRY(std::vector<float> scales,
            read_box_float8(c, scale, rows_box(c.shape(scale), first, count), as_bytes));
    SHW_TRY(std::vector<float> global, read_all_floats(c, one));
    const auto outputs = static_cast<std::size_t>(shape[2]);
    std::vector<float> out(bytes.size() * 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t input = i / outputs, output = i % outputs;  // of all experts read
      const unsigned both = std::to_integer<unsigned>(bytes[input / 2 * outputs + output]);
      const float number = kFp4Numbers[input % 2 == 0 ? both & 0xF : both >> 4];
      out[i] = number * (scales[input / kNvGroup * outputs + output] * global[0]);
    }
    return out;
  };
  return decoded;
}

// NVFP4: two elements per byte, a float8 scale per group of a row, and one global scale per tensor.
// `companion`: index of the global scale for QuantSource::companion(). `divides`: group scales are
// divided by the global scale (compressed-tensors).
Result<DecodedWeight> nvfp4_decoder(const QuantSource& from, std::size_t companion, bool divides) {
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0), one = from.companion(companion);
  if (scale && one && !divides && has_groups_of_inputs(shape, from.c().shape(*scale)))
    return nvfp4_experts_decoder(from);
  if (!scale || !one) return from.unfit("has no two-level scales next to it");
  if (shape.size() != 2) return from.unreadable_error("is not an FP4 matrix with two-level scales");
  if (volume(from.c().shape(*one)) != 1 || !from.is_float(one))
    return from.unfit("has no per-tensor scale");
  const ExtentsView scale_shape = from.c().shape(*scale);
  const std::int64_t columns = shape[1] * 2;
  if (scale_shape.size() != 2 || scale_shape[0] != shape[0] ||
      scale_shape[1] != columns / kNvGroup || columns % kNvGroup != 0)
    return has_kernel_scale_layout(scale_shape, elements_of_fp4(shape), kNvGroup)
               ? from.unreadable_error(
                     "has scales in a kernel-specific order, which is not decoded")
               : from.unfit("has scales that do not fit its rows");
  const bool as_bytes = from.c().dtype(*scale) == Dtype::kUint8;
  const bool is_parameter = from.c().fqn(from.pair.weight) == from.pair.stem;
  DecodedWeight decoded =
      from.result(from.pair.stem + (is_parameter ? "" : ".weight"), {shape[0], columns});
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale = *scale,
                    one = *one, columns, divides,
                    as_bytes](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes bytes, read_box_bytes(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(std::vector<float> scales,
            read_box_float8(c, scale, rows_box(c.shape(scale), first, count), as_bytes));
    SHW_TRY(std::vector<float> global, read_all_floats(c, one));
    const auto group = static_cast<std::size_t>(columns / c.shape(scale)[1]);
    std::vector<float> out(bytes.size() * 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const unsigned both = std::to_integer<unsigned>(bytes[i / 2]);
      const float number = kFp4Numbers[i % 2 == 0 ? both & 0xF : both >> 4];
      const float own = scales[i / group];
      out[i] = number * (divides ? own / global[0] : own * global[0]);
    }
    return out;
  };
  return decoded;
}

// Compares the companions with what the scheme and the other weights of the family have.
Status check_companions(const QuantSource& from, const QuantFamily& family) {
  const Checkpoint& c = from.c();
  if (is_named_for_other_method(family, from.config.method))
    return from.unfit(fmt::format("is packed as by {}, and its config says {}",
                                  family.scheme->title, from.config.method));
  for (std::size_t k = 0; k < family.scheme->companions.size(); ++k) {
    const QuantCompanion& companion = family.scheme->companions[k];
    const auto tensor = from.companion(k);
    if (!tensor) continue;
    const std::string ending(from.pair.ending[k]);
    const Dtype dtype = c.dtype(*tensor);
    if (!is_allowed_dtype(dtype, companion.dtypes))
      return from.unfit(
          fmt::format("has {} of {}, which its format does not use", ending, name(dtype)));
    const auto usual = family.usual_dtypes[k];
    const bool are_floats = usual && is_plain_float(dtype) && is_plain_float(*usual);
    if (are_floats && dtype != *usual && size_of(dtype) == size_of(*usual))
      return from.unfit(fmt::format("has {} of {}, and the other weights of {}", ending,
                                    name(dtype), name(*usual)));
    const auto shape = companion.shape == nullptr
                           ? std::nullopt
                           : companion.shape(from.config, from.weight(), c.shape(*tensor));
    if (shape && !same(*shape, c.shape(*tensor)))
      return from.unfit(fmt::format("has {} of {}, expected {}", ending, to_text(c.shape(*tensor)),
                                    to_text(*shape)));
  }
  return {};
}

}  // namespace

TensorClasses classes_of_families(const Checkpoint& checkpoint,
                                  const std::vector<QuantFamily>& families) {
  TensorClasses classes;
  const bool has_torchao = std::ranges::any_of(families, [](const QuantFamily& family) {
    return family.scheme->methods == "torchao" && !family.pairs.empty();
  });
  if (!has_torchao) return classes;
  for (TensorClass& one : tensor_classes(checkpoint)) classes.try_emplace(one.fqn, std::move(one));
  return classes;
}

Result<DecodedWeight> decoded_weight(std::shared_ptr<const Checkpoint> checkpoint,
                                     const QuantFamily& family, const QuantPair& pair,
                                     const QuantConfig& config, const TensorClasses& classes) {
  QuantSource from{std::move(checkpoint), pair, settings_of(config, pair.stem), family.is_said};
  const auto of_class = classes.find(decoded_name(from));
  if (of_class != classes.end()) from.of_class = &of_class->second;
  // Limit, so that extents multiplied by the numbers per word fit in 64 bits; excludes empty
  // weights.
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 45;
  const auto elements = volume(from.weight());
  if (!elements || *elements < 1 || *elements > kMaxElements)
    return from.unreadable_error("has no elements, or too many to be decoded");
  if (family.scheme->form == QuantForm::kGrouped && config.has_other_layout)
    return from.unreadable_error("is packed in a kernel-specific order, which is not decoded");
  SHW_CHECK(check_companions(from, family));
  switch (family.scheme->form) {
    case QuantForm::kScaled:
      return byte_decoder(from);
    case QuantForm::kInt8Rows:
      if (pair.beside[0] && volume(from.c().shape(*pair.beside[0])) != from.weight()[0])
        return from.unfit("has scales that are not one per row");
      return scaled_decoder(from, std::nullopt, 127.0f);
    case QuantForm::kMx:
      return mx_decoder(from);
    case QuantForm::kTwoLevels:
      return nvfp4_decoder(from, 1, false);
    case QuantForm::kTwoLevelsDivided:
      return nvfp4_decoder(from, 1, true);
    case QuantForm::kMxRows:
      return mx_rows_decoder(from, from.pair.stem + ".weight");
    case QuantForm::kMx8:
      return mx8_decoder(from);
    case QuantForm::kScaledBytes:
      return scaled_bytes_decoder(from);
    case QuantForm::kGrouped:
      return grouped_decoder(from);
    case QuantForm::kNf:
      return nf_decoder(from);
    case QuantForm::kMlx:
      return mlx_decoder(from);
    case QuantForm::kPacked:
      return packed_decoder(from);
    case QuantForm::kHqq:
      return hqq_decoder(from);
    case QuantForm::kTernary:
      return ternary_decoder(from);
    case QuantForm::kAffine:
    case QuantForm::kInt4:
    case QuantForm::kInt4Tiles:
    case QuantForm::kMxOfTorchao:
    case QuantForm::kNvOfTorchao:
      return torchao_decoder(from, family.scheme->form);
  }
  return from.unreadable_error("has a format that is not decoded");
}

}  // namespace shw
