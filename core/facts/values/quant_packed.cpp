// compressed-tensors, pack-quantized.
#include "core/facts/values/quant_packed.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"

namespace shw {
namespace {

struct PackedWeight {
  TensorId weight{}, scale{};
  std::optional<TensorId> zero;   // packed along rows, or one byte each
  std::optional<TensorId> order;  // the group of each column
  std::int64_t bits = 0, rows = 0, columns = 0, groups = 0;
};

constexpr std::int64_t kPackedWordBits = 32;  // bits

bool has_fitting_zeros(const Checkpoint& c, const PackedWeight& from) {
  const ExtentsView zeros = c.shape(*from.zero);
  const bool is_packed = c.dtype(*from.zero) == Dtype::kInt32;
  const std::int64_t rows =
      is_packed ? ceil_divide(from.rows * from.bits, kPackedWordBits) : from.rows;
  return (is_packed || c.dtype(*from.zero) == Dtype::kInt8) && zeros.size() == 2 &&
         zeros[0] == rows && zeros[1] == from.groups;
}

// Columns of the unpacked weight, from the companion tensor weight_shape. Fails if its rows are not
// those of the packed weight.
Result<std::int64_t> columns_of_shape(const QuantSource& from) {
  const auto said = from.companion(1);
  if (!said || volume(from.c().shape(*said)) != 2) return from.unfit("has no shape next to it");
  SHW_TRY(const std::vector<float> shape, read_all_floats(from.c(), *said));
  constexpr float kMostColumns = 1e9f;
  if (static_cast<float>(from.weight()[0]) != shape[0] ||
      !(shape[1] >= 1 && shape[1] <= kMostColumns))
    return from.unfit("has a shape next to it that does not match");
  return static_cast<std::int64_t>(shape[1]);
}

Result<PackedWeight> packed_weight(const QuantSource& from) {
  const Checkpoint& c = from.c();
  const QuantSettings& config = from.config;
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0);
  if (shape.size() != 2) return from.unfit("is not a matrix");
  if (!from.is_float(scale)) return from.unfit("has no scales next to it");
  PackedWeight weight{.weight = from.pair.weight,
                      .scale = *scale,
                      .zero = from.companion(2),
                      .order = from.companion(3)};
  if (config.has_zero_points && *config.has_zero_points != weight.zero.has_value())
    return from.unfit(weight.zero ? "has zero points, and its config says symmetric"
                                  : "has no zero points, and its config has");
  if (config.has_group_order == true && !weight.order)
    return from.unfit("has no order of groups (weight_g_idx), and its config has");
  SHW_TRY(weight.columns, columns_of_shape(from));
  weight.rows = shape[0];
  weight.bits =
      config.weight_bits.value_or(weight.columns * 8 <= shape[1] * kPackedWordBits ? 8 : 4);
  if (weight.bits != 4 && weight.bits != 8)
    return from.unreadable_error("has a number of bits that is not decoded");
  if (ceil_divide(weight.columns * weight.bits, kPackedWordBits) != shape[1])
    return from.unfit("has a shape next to it that does not match");
  const ExtentsView scales = c.shape(*scale);
  if (scales.size() != 2 || scales[0] != weight.rows || scales[1] < 1 ||
      weight.columns % scales[1] != 0)
    return from.unfit("has scales that do not fit its rows");
  weight.groups = scales[1];
  const std::int64_t group =
      config.has_scale_per_row ? weight.columns : config.weight_group.value_or(0);
  const std::int64_t of_row = group < 0    ? 1
                              : group == 0 ? weight.groups
                                           : ceil_divide(weight.columns, group);
  if (of_row != weight.groups)
    return from.unfit("has scales for a group size that differs from its config");
  if (weight.zero && !has_fitting_zeros(c, weight))
    return from.unfit("has zero points that do not fit its scales");
  if (weight.order && volume(c.shape(*weight.order)) != weight.columns)
    return from.unfit("has an order of groups that does not fit it");
  return weight;
}

// The code of 0 of rows [first, first + count): [count, groups].
Result<std::vector<int>> read_zero_codes(const Checkpoint& c, const PackedWeight& from,
                                         std::int64_t first, std::int64_t count) {
  const int middle = 1 << (from.bits - 1);
  const auto groups = static_cast<std::size_t>(from.groups);
  std::vector<int> zeros(static_cast<std::size_t>(count) * groups, middle);
  if (!from.zero || count == 0) return zeros;
  const bool is_packed = c.dtype(*from.zero) == Dtype::kInt32;
  const std::int64_t each = is_packed ? kPackedWordBits / from.bits : 1;
  const std::int64_t begin = first / each, end = ceil_divide(first + count, each);
  SHW_TRY(const Bytes stored,
          read_box_bytes(c, *from.zero, rows_box(c.shape(*from.zero), begin, end - begin)));
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i / groups);
    const std::size_t cell = static_cast<std::size_t>(row / each - begin) * groups + i % groups;
    zeros[i] = is_packed ? static_cast<int>(unpack_number(stored.data() + cell * 4,
                                                          static_cast<std::size_t>(row % each),
                                                          static_cast<unsigned>(from.bits)))
                         : middle + static_cast<std::int8_t>(stored[cell]);
  }
  return zeros;
}

Result<std::vector<std::size_t>> groups_of_columns(const Checkpoint& c, const PackedWeight& from) {
  std::vector<std::size_t> groups(static_cast<std::size_t>(from.columns));
  const auto in_group = static_cast<std::size_t>(from.columns / from.groups);
  for (std::size_t k = 0; k < groups.size(); ++k) groups[k] = k / in_group;
  if (!from.order) return groups;
  SHW_TRY(const Bytes order, read_box_bytes(c, *from.order, whole(copy_of(c.shape(*from.order)))));
  for (std::size_t k = 0; k < groups.size(); ++k) {
    std::int32_t own = 0;
    std::memcpy(&own, order.data() + k * sizeof own, sizeof own);
    constexpr std::int32_t kNotSet = -1;  // what the first writers left without an order
    if (own == kNotSet) continue;
    if (own < 0 || own >= from.groups)
      return fail(ErrorKind::kDamaged, "refers to a group that has no scale");
    groups[k] = static_cast<std::size_t>(own);
  }
  return groups;
}

QuantFloats decode_packed(const Checkpoint& c, const PackedWeight& from, std::int64_t first,
                          std::int64_t count) {
  SHW_TRY(const Bytes words,
          read_box_bytes(c, from.weight, rows_box(c.shape(from.weight), first, count)));
  SHW_TRY(const std::vector<float> factors,
          read_box_floats(c, from.scale, rows_box(c.shape(from.scale), first, count)));
  SHW_TRY(const std::vector<int> zeros, read_zero_codes(c, from, first, count));
  SHW_TRY(const std::vector<std::size_t> groups, groups_of_columns(c, from));
  const auto columns = static_cast<std::size_t>(from.columns);
  const auto in_row = static_cast<std::size_t>(from.groups);
  const std::size_t row_bytes = count == 0 ? 0 : words.size() / static_cast<std::size_t>(count);
  std::vector<float> out(static_cast<std::size_t>(count) * columns);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t row = i / columns, cell = row * in_row + groups[i % columns];
    const auto code = unpack_number(words.data() + row * row_bytes, i % columns,
                                    static_cast<unsigned>(from.bits));
    out[i] = static_cast<float>(static_cast<int>(code) - zeros[cell]) * factors[cell];
  }
  return out;
}

}  // namespace

Result<DecodedWeight> packed_decoder(const QuantSource& from) {
  SHW_TRY(const PackedWeight weight, packed_weight(from));
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", {weight.rows, weight.columns});
  decoded.decode = [checkpoint = from.checkpoint, weight](std::int64_t first, std::int64_t count) {
    return decode_packed(*checkpoint, weight, first, count);
  };
  if (weight.order)
    decoded.check_values = [checkpoint = from.checkpoint, weight]() -> Status {
      SHW_CHECK(groups_of_columns(*checkpoint, weight));
      return {};
    };
  return decoded;
}

}  // namespace shw
