// MLX's modes: affine, and floating-point numbers with a scale per group.
#include <algorithm>
#include <cstring>

#include "core/facts/values/quant_mx.h"
#include "core/facts/values/quant_packed.h"
#include "core/facts/values/quant_scaled.h"
#include "core/tensor/convert.h"

namespace shw {
namespace {

constexpr std::int64_t kMlxWordBits = 32;  // bits

// Number `index` of a row of codes that follow each other without gaps, lowest bits first.
std::uint32_t code_in_row(const std::byte* row, std::size_t row_bytes, std::size_t index,
                          unsigned bits) {
  const std::size_t bit = index * bits, first = bit / 8;
  std::uint16_t both = 0;
  std::memcpy(&both, row + first, std::min<std::size_t>(sizeof both, row_bytes - first));
  return static_cast<std::uint32_t>(both) >> (bit % 8) & ((1U << bits) - 1);
}

// Shape of the unpacked numbers; nullopt if a row of 32-bit words does not hold a whole count of
// numbers.
std::optional<Extents> shape_of_numbers(ExtentsView words, std::int64_t bits) {
  Extents shape = copy_of(words);
  if (shape.back() * kMlxWordBits % bits != 0) return std::nullopt;
  shape.back() = shape.back() * kMlxWordBits / bits;
  return shape;
}

// True if each group of `group` numbers of a row has a scale; 0 stands for groups of any length.
bool has_scale_of_groups(ExtentsView scales, ExtentsView numbers, std::int64_t group) {
  const std::size_t rows = numbers.size() - 1;
  return scales.size() == numbers.size() && same(scales.first(rows), numbers.first(rows)) &&
         scales.back() >= 1 && numbers.back() % scales.back() == 0 &&
         (group == 0 || numbers.back() / scales.back() == group);
}

Result<DecodedWeight> mlx_affine_decoder(const QuantSource& from) {
  const auto scale = from.companion(0), bias = from.companion(1);
  constexpr std::int64_t kMinBits = 2, kMaxBits = 8;
  if (!from.config.bits || *from.config.bits < kMinBits || *from.config.bits > kMaxBits)
    return from.unreadable_error("has no bits setting, which is needed to decode it");
  if (!from.is_float(scale) || !from.is_float(bias) ||
      !same(from.c().shape(*scale), from.c().shape(*bias)))
    return from.unfit("has no scales and biases that fit each other");
  const auto bits = static_cast<unsigned>(*from.config.bits);
  const auto numbers = shape_of_numbers(from.weight(), *from.config.bits);
  const std::int64_t group = from.config.has_overrides ? 0 : from.config.group.value_or(0);
  if (!numbers || !has_scale_of_groups(from.c().shape(*scale), *numbers, group))
    return from.unfit("has scales that do not fit its rows");
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", *numbers);
  const auto row_length = static_cast<std::size_t>(numbers->back());
  const auto of_group = row_length / static_cast<std::size_t>(from.c().shape(*scale).back());
  decoded.decode = [=, checkpoint = from.checkpoint, weight = from.pair.weight](
                       std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(const Bytes words, read_box_bytes(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(const std::vector<float> factors,
            read_box_floats(c, *scale, rows_box(c.shape(*scale), first, count)));
    SHW_TRY(const std::vector<float> biases,
            read_box_floats(c, *bias, rows_box(c.shape(*bias), first, count)));
    const std::size_t row_bytes = row_length * bits / 8;
    std::vector<float> out(words.size() / row_bytes * row_length);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::byte* row = words.data() + i / row_length * row_bytes;
      const float product = static_cast<float>(code_in_row(row, row_bytes, i % row_length, bits)) *
                            factors[i / of_group];
      out[i] = product + biases[i / of_group];
    }
    return out;
  };
  return decoded;
}

struct FloatMode {
  std::string_view name;
  std::int64_t bits, group;
  bool has_float8_scales;  // else exponents
};
constexpr FloatMode kFloatModes[] = {
    {"mxfp4", 4, 32, false}, {"mxfp8", 8, 32, false}, {"nvfp4", 4, 16, true}};

// Numbers of FP4 or FP8 (E4M3), each times the scale of its group.
Result<DecodedWeight> mlx_float_decoder(const QuantSource& from, const FloatMode& mode) {
  const auto scale = from.companion(0);
  const auto numbers = shape_of_numbers(from.weight(), mode.bits);
  const CompanionDtypes dtypes =
      mode.has_float8_scales ? CompanionDtypes::kFloat8s : CompanionDtypes::kExponents;
  if (from.companion(1) || !scale || !is_allowed_dtype(from.c().dtype(*scale), dtypes) ||
      !numbers || !has_scale_of_groups(from.c().shape(*scale), *numbers, mode.group) ||
      from.config.bits.value_or(mode.bits) != mode.bits ||
      from.config.group.value_or(mode.group) != mode.group)
    return from.unfit("has no scales that fit its mode");
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", *numbers);
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale = *scale, mode](
                       std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(const Bytes bytes, read_box_bytes(c, weight, rows_box(c.shape(weight), first, count)));
    const Box box = rows_box(c.shape(scale), first, count);
    SHW_TRY(const std::vector<float> factors, mode.has_float8_scales
                                                  ? read_box_float8(c, scale, box, true)
                                                  : read_box_scales(c, scale, box));
    const std::size_t each = mode.bits == 4 ? 2 : 1, group = static_cast<std::size_t>(mode.group);
    std::vector<float> out(bytes.size() * each);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto code = std::to_integer<unsigned>(bytes[i / each]);
      const float number = each == 1 ? from_narrow<kE4m3fnForm>(code)
                                     : kFp4Numbers[i % 2 == 0 ? code & 0xF : code >> 4];
      out[i] = number * factors[i / group];
    }
    return out;
  };
  return decoded;
}

}  // namespace

Result<DecodedWeight> mlx_decoder(const QuantSource& from) {
  const bool is_old_mxfp4 = from.config.mode.empty() && !from.companion(1) &&
                            from.config.bits == 4 && from.config.group == 32 && has_exponents(from);
  const std::string_view said = from.config.mode;
  const std::string_view mode = is_old_mxfp4 ? "mxfp4" : said;
  if (mode.empty() || mode == "affine") return mlx_affine_decoder(from);
  const auto* known = std::ranges::find(kFloatModes, mode, &FloatMode::name);
  if (known == std::end(kFloatModes))
    return from.unreadable_error("has a mode that is not decoded");
  return mlx_float_decoder(from, *known);
}

}  // namespace shw
