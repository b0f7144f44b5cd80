// bitsandbytes NF4 and FP4.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/facts/values/quant_packed.h"

namespace shw {
namespace {

struct NfState {
  Extents shape;
  std::int64_t block = 0, nested_block = 0;
  double nested_offset = 0;
};
std::optional<NfState> nf_state(BytesView bytes) {
  const auto json =
      parse_json<nlohmann::json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).tree;
  if (!json.is_object() || !json.contains("shape") || !json["shape"].is_array())
    return std::nullopt;
  NfState state;
  for (const auto& one : json["shape"]) {
    if (!one.is_number_integer()) return std::nullopt;
    state.shape.push_back(one.get<std::int64_t>());
  }
  auto number = [&](const char* name) {
    const double value =
        json.contains(name) && json[name].is_number() ? json[name].get<double>() : 0.0;
    return std::abs(value) <= 1e9 ? value : 0.0;
  };
  state.block = static_cast<std::int64_t>(number("blocksize"));
  state.nested_block = static_cast<std::int64_t>(number("nested_blocksize"));
  state.nested_offset = number("nested_offset");
  return state;
}

QuantFloats read_block_absmax(const Checkpoint& c, const QuantPair& pair, const NfState& state) {
  if (c.dtype(*pair.beside[0]) != Dtype::kUint8) return read_all_floats(c, *pair.beside[0]);
  if (!pair.beside[3] || !pair.beside[4] || state.nested_block < 1)
    return fail(ErrorKind::kUnsupported,
                "has quantised scales without the tensors that decode them");
  SHW_TRY(Bytes codes,
          read_box_bytes(c, *pair.beside[0], whole(copy_of(c.shape(*pair.beside[0])))));
  SHW_TRY(std::vector<float> outer, read_all_floats(c, *pair.beside[3]));
  SHW_TRY(std::vector<float> table, read_all_floats(c, *pair.beside[4]));
  std::vector<float> out(codes.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t block = i / static_cast<std::size_t>(state.nested_block);
    const auto code = std::to_integer<std::size_t>(codes[i]);
    if (block >= outer.size() || code >= table.size())
      return fail(ErrorKind::kDamaged, "has fewer scales of scales than it has scales");
    out[i] = table[code] * outer[block] + static_cast<float>(state.nested_offset);
  }
  return out;
}

bool has_matching_absmax(const QuantSource& from, const NfState& state, std::int64_t elements) {
  const Checkpoint& c = from.c();
  const auto count = volume(c.shape(*from.companion(0)));
  if (count != ceil_divide(elements, state.block)) return false;
  if (c.dtype(*from.companion(0)) != Dtype::kUint8) return from.is_float(from.companion(0));
  const auto outer = from.companion(3), table = from.companion(4);
  return state.nested_block > 0 && from.is_float(outer) && from.is_float(table) &&
         volume(c.shape(*outer)) == ceil_divide(*count, state.nested_block) &&
         volume(c.shape(*table)) == 256;
}

}  // namespace

Result<DecodedWeight> nf_decoder(const QuantSource& from) {
  const Checkpoint& c = from.c();
  if (!from.companion(0) || !from.companion(1) || !from.companion(2))
    return from.unfit("has no table or no state next to it");
  constexpr std::int64_t kMaxState = 64 << 10;
  if (volume(c.shape(*from.companion(2))).value_or(kMaxState + 1) > kMaxState)
    return from.unfit("has a state that is too large");
  SHW_TRY(Bytes json,
          read_box_bytes(c, *from.companion(2), whole(copy_of(c.shape(*from.companion(2))))));
  const auto state = nf_state(json);
  const std::int64_t elements = state ? checked_volume(state->shape).value_or(0) : 0;
  const auto stored = checked_mul(volume(from.weight()).value_or(0),
                                  std::int64_t{size_of(c.dtype(from.pair.weight))})
                          .value_or(0);
  if (elements < 1 || state->shape.empty() || state->block < 2 ||
      stored != ceil_divide(elements, 2) || volume(c.shape(*from.companion(1))) != 16 ||
      !from.is_float(from.companion(1)))
    return from.unfit("has a state or a table that does not match its shape and blocks");
  if (!has_matching_absmax(from, *state, elements))
    return from.unfit("has scales that do not fit its blocks");
  DecodedWeight decoded = from.result(std::string(c.fqn(from.pair.weight)), state->shape);
  decoded.rows_at_once = state->shape[0];
  decoded.decode = [checkpoint = from.checkpoint, pair = from.pair, state = *state, elements](
                       std::int64_t, std::int64_t) -> QuantFloats {
    const Checkpoint& source = *checkpoint;
    SHW_TRY(Bytes codes,
            read_box_bytes(source, pair.weight, whole(copy_of(source.shape(pair.weight)))));
    SHW_TRY(std::vector<float> table, read_all_floats(source, *pair.beside[1]));
    SHW_TRY(std::vector<float> largest, read_block_absmax(source, pair, state));
    std::vector<float> out(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t block = i / static_cast<std::size_t>(state.block);
      if (block >= largest.size())
        return fail(ErrorKind::kDamaged, "has fewer scales than it has blocks");
      const unsigned both = std::to_integer<unsigned>(codes[i / 2]);
      out[i] = table[i % 2 == 0 ? both >> 4 : both & 0xF] * largest[block];
    }
    return out;
  };
  return decoded;
}

}  // namespace shw
