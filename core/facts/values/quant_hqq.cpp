#include "core/facts/values/quant_hqq.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/printable.h"
#include "core/formats/plain_value.h"
#include "core/tensor/convert.h"

namespace shw {
namespace {

struct HqqPacking {
  std::string_view name;
  unsigned bits, element_bytes;
  std::int64_t each;  // codes per packed element
  bool is_padded;     // the last packed rows may hold codes of no row
};
constexpr auto kHqqPackings = std::to_array<HqqPacking>({{"8bit_u8", 8, 1, 1, false},
                                                         {"4bit_u8", 4, 1, 2, false},
                                                         {"3bit_32", 3, 4, 10, true},
                                                         {"2bit_u8", 2, 1, 4, false},
                                                         {"1bit_u8", 1, 1, 8, false}});

// Ternary weights (1.58 bits) have codes of 2 bits.
std::string_view packing_of_bits(double bits) {
  if (bits == 8 || bits == 6 || bits == 5) return "8bit_u8";
  if (bits == 4) return "4bit_u8";
  if (bits == 3) return "3bit_32";
  constexpr double kTernary = 1.58, kNearly = 1e-3;
  if (bits == 2 || std::abs(bits - kTernary) < kNearly) return "2bit_u8";
  return bits == 1 ? "1bit_u8" : "";
}

struct HqqWeight {
  TensorId weight{}, scale{}, zero{};
  HqqPacking packing = {};
  Extents shape = {};
  std::int64_t rows = 0, columns = 0, packed_rows = 0;  // of the matrix of groups
  std::int64_t scale_of_row = 0, scale_of_column = 0;   // steps in the scales
  Dtype dtype{};                                        // of the scales
};

// A setting of the weight, stored as a tensor or as a plain value.
Result<PlainValue> hqq_setting(const QuantSource& from, std::string_view key) {
  constexpr std::uint64_t kMaxSetting = 1 << 16;  // bytes
  const Checkpoint& c = from.c();
  const std::string fqn = from.pair.stem + "." + std::string(key);
  PlainValue value;
  if (const auto tensor = c.find(fqn)) {
    const auto count = volume(c.shape(*tensor));
    if (!count || static_cast<std::uint64_t>(*count) > kMaxSetting) return value;
    if (c.dtype(*tensor) == Dtype::kUint8) {
      SHW_TRY(const Bytes bytes, read_box_bytes(c, *tensor, whole(copy_of(c.shape(*tensor)))));
      value.kind = c.shape(*tensor).empty() ? PlainValue::Kind::kNumber : PlainValue::Kind::kText;
      value.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (bytes.size() == 1) value.number = std::to_integer<int>(bytes[0]);
      return value;
    }
    SHW_TRY(const std::vector<float> numbers, read_all_floats(c, *tensor));
    value.kind = c.shape(*tensor).empty() ? PlainValue::Kind::kNumber : PlainValue::Kind::kList;
    for (const float number : numbers) {
      PlainValue& item = value.items.emplace_back();
      item.kind = PlainValue::Kind::kNumber;
      item.number = number;
    }
    if (numbers.size() == 1) value.number = numbers[0];
    return value;
  }
  const auto objects = c.objects();
  const auto found = std::ranges::find(objects, fqn, &NonTensorEntry::fqn);
  if (found == objects.end()) return value;
  return read_plain_value(c, static_cast<std::size_t>(found - objects.begin()), kMaxSetting);
}

Result<HqqPacking> packing_of(const QuantSource& from) {
  SHW_TRY(const PlainValue bits, hqq_setting(from, "nbits"));
  SHW_TRY(const PlainValue said, hqq_setting(from, "packing"));
  const bool has_bits = bits.kind == PlainValue::Kind::kNumber;
  if (!has_bits && said.text.empty())
    return from.unfit("has no nbits next to it, which is needed to unpack it");
  if (has_bits && from.config.weight_bits &&
      bits.number != static_cast<double>(*from.config.weight_bits))
    return from.unfit(fmt::format("has {} bits, and its config says {}", to_text(bits),
                                  *from.config.weight_bits));
  const std::string_view of_bits = has_bits ? packing_of_bits(bits.number) : said.text;
  if (!said.text.empty() && said.text != of_bits)
    return from.unfit(
        fmt::format("has {} bits, and its packing is {}", to_text(bits), printable(said.text)));
  const auto* known = std::ranges::find(kHqqPackings, of_bits, &HqqPacking::name);
  if (known == kHqqPackings.end())
    return from.unreadable_error("has a number of bits that is not decoded");
  return *known;
}

Result<Extents> shape_of_hqq(const QuantSource& from) {
  SHW_TRY(const PlainValue said, hqq_setting(from, "shape"));
  if (said.kind != PlainValue::Kind::kList || said.items.empty())
    return from.unfit("has no shape next to it");
  Extents shape;
  for (const PlainValue& extent : said.items) {
    constexpr double kMaxExtent = 1 << 24;  // up to which float32 holds each integer
    if (extent.kind != PlainValue::Kind::kNumber || !(extent.number >= 1) ||
        extent.number > kMaxExtent)
      return from.unfit("has a shape next to it that does not match");
    shape.push_back(static_cast<std::int64_t>(extent.number));
  }
  return shape;
}

// Sets the matrix of groups, whose packed columns give its columns.
Status set_matrix(const QuantSource& from, HqqWeight& weight) {
  const ExtentsView packed = from.weight();
  const HqqPacking& form = weight.packing;
  const auto row_bytes =
      checked_mul(packed[1], static_cast<std::int64_t>(size_of(from.c().dtype(from.pair.weight))));
  const auto elements = volume(weight.shape);
  if (!row_bytes || *row_bytes == 0 || *row_bytes % form.element_bytes != 0 || !elements)
    return from.unfit("has packed codes that do not match its bits");
  weight.packed_rows = packed[0];
  weight.columns = *row_bytes / form.element_bytes;
  if (*elements % weight.columns != 0)
    return from.unfit(fmt::format("has {} columns of codes, which do not match its shape, {}",
                                  weight.columns, to_text(weight.shape)));
  weight.rows = *elements / weight.columns;
  const std::int64_t needed = ceil_divide(weight.rows, form.each);
  if (needed != weight.packed_rows || (!form.is_padded && weight.rows % form.each != 0))
    return from.unfit(fmt::format("has {} rows of packed codes, and its shape, {}, makes {}",
                                  weight.packed_rows, to_text(weight.shape), needed));
  return {};
}

// Sets which scale belongs to an element.
Status set_scales(const QuantSource& from, HqqWeight& weight) {
  const Checkpoint& c = from.c();
  const ExtentsView scale = c.shape(weight.scale);
  if (!same(scale, c.shape(weight.zero)))
    return from.unfit(fmt::format("has scales of {} and zero points of {}", to_text(scale),
                                  to_text(c.shape(weight.zero))));
  SHW_TRY(const PlainValue axis, hqq_setting(from, "axis"));
  SHW_TRY(const PlainValue group, hqq_setting(from, "group_size"));
  if (volume(scale) == 1) return {};  // of the whole tensor
  if (axis.kind != PlainValue::Kind::kNumber || (axis.number != 0 && axis.number != 1))
    return from.unfit("has no axis next to it, which is needed to find its groups");
  const bool is_along_rows = axis.number == 1;
  const Extents expected = is_along_rows ? Extents{weight.rows, 1} : Extents{1, weight.columns};
  if (!same(scale, expected))
    return from.unfit(
        fmt::format("has scales of {}, but its groups need {}", to_text(scale), to_text(expected)));
  const std::int64_t in_group = is_along_rows ? weight.columns : weight.rows;
  const bool has_group = group.kind == PlainValue::Kind::kNumber;
  if (has_group && group.number != static_cast<double>(in_group))
    return from.unfit(
        fmt::format("has groups of {}, and its group_size is {}", in_group, to_text(group)));
  if (from.config.weight_group && *from.config.weight_group != in_group)
    return from.unfit(fmt::format("has groups of {}, and its config says {}", in_group,
                                  *from.config.weight_group));
  (is_along_rows ? weight.scale_of_row : weight.scale_of_column) = 1;
  return {};
}

Result<HqqWeight> hqq_weight(const QuantSource& from) {
  const Checkpoint& c = from.c();
  const auto scale = from.companion(0), zero = from.companion(1);
  if (from.weight().size() != 2) return from.unfit("is not a matrix of packed codes");
  if (!scale || !zero) return from.unfit("has no scales and zero points next to it");
  const bool is_plain = from.pair.ending[0] == ".scale" && from.pair.ending[1] == ".zero";
  if (!is_plain)
    return from.unreadable_error(
        fmt::format("has scales or zero points ({}, {}) that are themselves quantised or stored "
                    "together, which is not decoded",
                    from.pair.ending[0].substr(1), from.pair.ending[1].substr(1)));
  SHW_TRY(const HqqPacking packing, packing_of(from));
  HqqWeight weight{.weight = from.pair.weight, .scale = *scale, .zero = *zero, .packing = packing};
  weight.dtype = c.dtype(*scale);
  if (c.dtype(*zero) != weight.dtype)
    return from.unfit(fmt::format("has scales of {} and zero points of {}", name(weight.dtype),
                                  name(c.dtype(*zero))));
  SHW_TRY(const PlainValue as_float, hqq_setting(from, "view_as_float"));
  const Dtype stored = c.dtype(weight.weight);
  const bool is_float = is_plain_float(stored);
  if ((as_float.number != 0) != is_float)
    return from.unfit(
        fmt::format("is {}, and its view_as_float says {}", name(stored), as_float.number != 0));
  if (!is_float && stored != (packing.element_bytes == 4 ? Dtype::kInt32 : Dtype::kUint8))
    return from.unfit(fmt::format("is {}, and its packing is {}", name(stored), packing.name));
  SHW_TRY(weight.shape, shape_of_hqq(from));
  SHW_CHECK(set_matrix(from, weight));
  SHW_CHECK(set_scales(from, weight));
  return weight;
}

float rounded(Dtype dtype, float number) {
  switch (dtype) {
    case Dtype::kFloat16:
      return from_narrow<kFloat16Form>(to_narrow<kFloat16Form>(number));
    case Dtype::kBfloat16:
      return from_narrow<kBfloat16Form>(to_narrow<kBfloat16Form>(number));
    default:
      return number;
  }
}

QuantFloats decode_hqq(const Checkpoint& c, const HqqWeight& from) {
  SHW_TRY(const Bytes packed, read_box_bytes(c, from.weight, whole(copy_of(c.shape(from.weight)))));
  SHW_TRY(const std::vector<float> scales, read_all_floats(c, from.scale));
  SHW_TRY(const std::vector<float> zeros, read_all_floats(c, from.zero));
  const auto columns = static_cast<std::size_t>(from.columns),
             packed_rows = static_cast<std::size_t>(from.packed_rows);
  const unsigned bits = from.packing.bits, last = static_cast<unsigned>(from.packing.each) - 1;
  std::vector<float> out(static_cast<std::size_t>(from.rows) * columns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t row = i / columns, column = i % columns;
    const std::size_t at = (row % packed_rows * columns + column) * from.packing.element_bytes;
    std::uint32_t word = 0;
    std::memcpy(&word, packed.data() + at, from.packing.element_bytes);
    const auto part = static_cast<unsigned>(row / packed_rows);
    const std::uint32_t code = word >> (last - part) * bits & ((1U << bits) - 1);
    const std::size_t group = row * static_cast<std::size_t>(from.scale_of_row) +
                              column * static_cast<std::size_t>(from.scale_of_column);
    const float centred = rounded(from.dtype, static_cast<float>(code) - zeros[group]);
    out[i] = rounded(from.dtype, centred * scales[group]);
  }
  return out;
}

}  // namespace

Result<DecodedWeight> hqq_decoder(const QuantSource& from) {
  SHW_TRY(HqqWeight weight, hqq_weight(from));
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", weight.shape);
  decoded.rows_at_once = weight.shape[0];
  decoded.decode = [checkpoint = from.checkpoint, weight = std::move(weight)](
                       std::int64_t, std::int64_t) { return decode_hqq(*checkpoint, weight); };
  return decoded;
}

}  // namespace shw
