// BitNet's weights of -1, 0 and 1.
#include "core/facts/values/quant_packed.h"

namespace shw {
namespace {

constexpr std::size_t kTernaryOfByte = 4;

struct TernaryWeight {
  TensorId weight{}, scale{};
  bool divides = false;
};

QuantFloats decode_ternary(const Checkpoint& c, const TernaryWeight& from) {
  SHW_TRY(const Bytes packed, read_box_bytes(c, from.weight, whole(copy_of(c.shape(from.weight)))));
  SHW_TRY(const std::vector<float> scale, read_all_floats(c, from.scale));
  std::vector<float> out(packed.size() * kTernaryOfByte);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const unsigned bits = std::to_integer<unsigned>(packed[i % packed.size()]);
    const auto part = static_cast<unsigned>(i / packed.size());
    const auto number = static_cast<float>(static_cast<int>(bits >> (2 * part) & 3U) - 1);
    out[i] = from.divides ? number / scale[0] : number * scale[0];
  }
  return out;
}

}  // namespace

Result<DecodedWeight> ternary_decoder(const QuantSource& from) {
  const auto scale = from.companion(0);
  if (from.weight().size() != 2) return from.unfit("is not a matrix of packed codes");
  if (!from.is_float(scale) || volume(from.c().shape(*scale)) != 1)
    return from.unfit("has no single weight_scale next to it");
  const TernaryWeight weight{from.pair.weight, *scale, from.config.divides_by_scale};
  const auto rows = from.weight()[0] * static_cast<std::int64_t>(kTernaryOfByte);
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", {rows, from.weight()[1]});
  decoded.rows_at_once = rows;
  decoded.decode = [checkpoint = from.checkpoint, weight](std::int64_t, std::int64_t) {
    return decode_ternary(*checkpoint, weight);
  };
  return decoded;
}

}  // namespace shw
