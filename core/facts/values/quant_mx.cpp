#include "core/facts/values/quant_mx.h"

#include <cmath>
#include <utility>

#include "core/base/checked.h"
#include "core/facts/values/quant_numbers.h"

namespace shw {
namespace {

// Decodes both FP4 halves of a byte, times 2^(exponent - 127).
std::pair<float, float> numbers_of(std::byte both, std::byte exponent) {
  const auto codes = std::to_integer<unsigned>(both);
  const int power = std::to_integer<int>(exponent) - 127;
  return {std::ldexp(kFp4Numbers[codes & 0xF], power), std::ldexp(kFp4Numbers[codes >> 4], power)};
}

}  // namespace

bool has_exponents(const QuantSource& from) {
  const auto scale = from.companion(0);
  return scale && (from.c().dtype(*scale) == Dtype::kUint8 ||
                   from.c().dtype(*scale) == Dtype::kFloat8E8m0fnu);
}

Result<DecodedWeight> mx_decoder(const QuantSource& from) {
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0);
  if (!scale || shape.size() != 4 || from.c().dtype(*scale) != Dtype::kUint8 ||
      shape[3] != kMxGroup / 2 || !same(from.c().shape(*scale), shape.first(3)))
    return from.unfit("is not of the four dimensions of MXFP4, with a scale for each group");
  const std::int64_t rows = shape[1], bytes = shape[2] * shape[3];
  DecodedWeight decoded = from.result(from.pair.stem, {shape[0], bytes * 2, rows});
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale = *scale, rows,
                    bytes](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes blocks, read_box_bytes(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(Bytes scales, read_box_bytes(c, scale, rows_box(c.shape(scale), first, count)));
    const auto group = c.shape(weight)[3];
    std::vector<float> out(blocks.size() * 2);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t expert = at / (rows * bytes), row = at / bytes % rows, byte = at % bytes;
      const auto [low, high] = numbers_of(blocks[i], scales[i / static_cast<std::size_t>(group)]);
      const std::int64_t place = (expert * bytes + byte) * 2 * rows + row;
      out[static_cast<std::size_t>(place)] = low;
      out[static_cast<std::size_t>(place + rows)] = high;
    }
    return out;
  };
  return decoded;
}

Result<DecodedWeight> mx_rows_decoder(const QuantSource& from, std::string fqn) {
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0);
  const auto wide = static_cast<std::int64_t>(size_of(from.c().dtype(from.pair.weight)));
  const ExtentsView scales = scale ? from.c().shape(*scale) : ExtentsView();
  if (!has_exponents(from) || shape.size() < 2 || scales.size() != shape.size() ||
      !same(scales.first(scales.size() - 1), shape.first(shape.size() - 1)) || scales.back() < 1 ||
      shape.back() * wide != scales.back() * kMxGroup / 2)
    return has_kernel_scale_layout(scales, elements_of_fp4(shape), kMxGroup)
               ? from.unreadable_error(
                     "has scales in a kernel-specific order, which is not decoded")
               : from.unfit("is not of rows of FP4 with an exponent for each group");
  Extents decoded_shape = copy_of(shape);
  decoded_shape.back() *= wide * 2;
  const auto group = static_cast<std::size_t>(shape.back() * wide / scales.back());
  DecodedWeight decoded = from.result(std::move(fqn), std::move(decoded_shape));
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale = *scale, group](
                       std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(const Bytes bytes, read_box_bytes(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(const Bytes exponents,
            read_box_bytes(c, scale, rows_box(c.shape(scale), first, count)));
    std::vector<float> out;
    out.reserve(bytes.size() * 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto [low, high] = numbers_of(bytes[i], exponents[i / group]);
      out.push_back(low);
      out.push_back(high);
    }
    return out;
  };
  return decoded;
}

}  // namespace shw
