// GPTQ and AWQ.
#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/values/quant_packed.h"

namespace shw {
namespace {

struct GroupedWeight {
  TensorId weight{}, scale{}, zero{};
  std::optional<TensorId> order = {};  // of groups
  std::int64_t bits = 0, inputs = 0, outputs = 0, groups = 0;
  std::int64_t group = 0;  // inputs that share a scale, without an order
  bool is_awq = false;
  // Added to words of zero points. GPTQModel subtracts and adds 1 of all codes of a word at once,
  // so that a code of 0 borrows from the next one.
  std::uint32_t zero_offset = 0;
  bool is_symmetric = false;  // by the config: all zero points are the code in the middle
  bool is_in_order = false;   // by the config: groups
};

// The number of bits that the extents of scales and zero points make.
std::optional<std::int64_t> bits_of_zeros(std::int64_t outputs, std::int64_t words) {
  const auto all = checked_mul(words, std::int64_t{32});
  if (!all || outputs < 1 || *all % outputs != 0) return std::nullopt;
  return *all / outputs;
}

// Sets the inputs that share a scale.
Status set_groups(const QuantSource& from, GroupedWeight& weight) {
  const QuantSettings& config = from.config;
  if (config.has_overrides || (!config.group && weight.order)) {
    if (weight.order) return {};
    if (weight.inputs % weight.groups != 0)
      return from.unreadable_error("has groups of a size that no config says");
    weight.group = weight.inputs / weight.groups;
    return {};
  }
  weight.group = config.group && *config.group > 0 ? *config.group : weight.inputs;
  // GPTQ's libraries pack multiples of 32 inputs.
  constexpr std::int64_t kLeastInputs = 32;
  if (!weight.order && !weight.is_awq && weight.inputs % kLeastInputs != 0)
    return from.unfit(fmt::format("has {} inputs, not a multiple of 32", weight.inputs));
  if (ceil_divide(weight.inputs, weight.group) != weight.groups)
    return from.unfit(fmt::format("has {} of scales, and its inputs make {}",
                                  plural(static_cast<std::uint64_t>(weight.groups), "group"),
                                  ceil_divide(weight.inputs, weight.group)));
  if (weight.inputs % weight.group != 0 &&
      (weight.is_awq || !std::has_single_bit(static_cast<std::uint64_t>(weight.group))))
    return from.unfit(fmt::format("has {} inputs, which groups of {} do not divide", weight.inputs,
                                  weight.group));
  return {};
}

Result<GroupedWeight> grouped_weight(const QuantSource& from) {
  const QuantSettings& config = from.config;
  const Checkpoint& c = from.c();
  const auto scale = from.companion(0), zero = from.companion(1), order = from.companion(2);
  const ExtentsView shape = from.weight();
  if (!scale || !zero || shape.size() != 2 || c.shape(*scale).size() != 2 ||
      c.shape(*zero).size() != 2)
    return from.unfit("is not a matrix with scales and zero points");
  const ExtentsView scales = c.shape(*scale), zeros = c.shape(*zero);
  GroupedWeight weight{.weight = from.pair.weight, .scale = *scale, .zero = *zero};
  weight.is_awq = config.method == "awq";
  weight.bits = config.bits.value_or(0);
  if (config.has_overrides) weight.bits = bits_of_zeros(scales[1], zeros[1]).value_or(0);
  if (config.has_other_layout)
    return from.unreadable_error("is packed in an order of one kernel, which is not decoded");
  if ((weight.bits != 4 && weight.bits != 8 && weight.bits != 2) ||
      (weight.is_awq && weight.bits != 4))
    return from.unreadable_error("has a number of bits that is not decoded");
  const std::int64_t each = 32 / weight.bits;
  weight.inputs = weight.is_awq ? shape[0] : shape[0] * each;
  weight.outputs = weight.is_awq ? shape[1] * each : shape[1];
  weight.groups = scales[0];
  if (scales[1] != weight.outputs || weight.groups < 1 || zeros[0] != weight.groups ||
      zeros[1] * each != weight.outputs)
    return from.unfit("has scales or zero points that do not fit it");
  if (!weight.is_awq) weight.order = order;
  if (weight.order && volume(c.shape(*weight.order)) != weight.inputs)
    return from.unfit("has an order of groups that does not fit it");
  // AutoGPTQ, GPTQModel and vLLM take groups in order unless desc_act is true.
  if (!weight.order && !weight.is_awq && weight.groups > 1 && config.has_group_order == true)
    return from.unfit("has no order of groups (g_idx), and its config says desc_act");
  SHW_CHECK(set_groups(from, weight));
  const std::uint32_t ones = ~0U / ((1U << weight.bits) - 1);  // 1 of each code
  weight.zero_offset = config.has_whole_zeros || weight.is_awq ? 0 : ones;
  weight.is_in_order = config.has_group_order == false && weight.group > 0;
  weight.is_symmetric = config.is_symmetric == true && !weight.is_awq;
  return weight;
}

// The group of each input.
Result<std::vector<std::size_t>> groups_of_inputs(const Checkpoint& c, const GroupedWeight& from) {
  std::vector<std::size_t> groups(static_cast<std::size_t>(from.inputs));
  Bytes order;
  if (from.order) {
    SHW_TRY(order, read_box_bytes(c, *from.order, whole(copy_of(c.shape(*from.order)))));
  }
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const std::size_t in_order = from.group > 0 ? k / static_cast<std::size_t>(from.group) : 0;
    groups[k] = in_order;
    if (!from.order) continue;
    std::int32_t own = 0;
    std::memcpy(&own, order.data() + k * sizeof own, sizeof own);
    if (own < 0 || own >= from.groups)
      return fail(ErrorKind::kDamaged, "names a group of scales that is not there");
    groups[k] = static_cast<std::size_t>(own);
    if (from.is_in_order && groups[k] != in_order)
      return fail(ErrorKind::kDamaged,
                  "has groups in another order (g_idx), and its config says desc_act false");
  }
  return groups;
}

constexpr std::size_t kAwqOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// The place of a column among the codes of its row.
std::size_t place_in_row(const GroupedWeight& from, std::size_t column) {
  return from.is_awq ? column / 8 * 8 + kAwqOrder[column % 8] : column;
}

// Zero points [groups, outputs].
Result<std::vector<std::uint32_t>> zero_points(const Checkpoint& c, const GroupedWeight& from) {
  SHW_TRY(Bytes packed, read_box_bytes(c, from.zero, whole(copy_of(c.shape(from.zero)))));
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= packed.size();
       at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, packed.data() + at, sizeof word);
    word += from.zero_offset;
    std::memcpy(packed.data() + at, &word, sizeof word);
  }
  const auto width = static_cast<unsigned>(from.bits);
  const std::size_t outputs = static_cast<std::size_t>(from.outputs),
                    row_bytes = outputs * width / 8;
  std::vector<std::uint32_t> zeros(static_cast<std::size_t>(from.groups) * outputs);
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    zeros[i] = packed_number(packed.data() + i / outputs * row_bytes,
                             place_in_row(from, i % outputs), width);
    if (from.is_symmetric && zeros[i] != 1U << (width - 1))
      return fail(ErrorKind::kDamaged, fmt::format("has the zero point {}, and its config says "
                                                   "that all are {} (sym)",
                                                   zeros[i], 1U << (width - 1)));
  }
  return zeros;
}

QuantFloats decode_grouped(const Checkpoint& c, const GroupedWeight& from) {
  SHW_TRY(const Bytes packed, read_box_bytes(c, from.weight, whole(copy_of(c.shape(from.weight)))));
  SHW_TRY(const std::vector<std::uint32_t> zeros, zero_points(c, from));
  SHW_TRY(const std::vector<float> factors, read_all_floats(c, from.scale));
  SHW_TRY(const std::vector<std::size_t> groups, groups_of_inputs(c, from));
  const auto width = static_cast<unsigned>(from.bits);
  const std::size_t per_word = 32 / width, outputs = static_cast<std::size_t>(from.outputs),
                    inputs = static_cast<std::size_t>(from.inputs);
  const std::size_t row_bytes = outputs / per_word * 4;  // of packed columns
  std::vector<float> out(inputs * outputs);
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t n = 0; n < outputs; ++n) {
      // The word is in a column (GPTQ) or a row (AWQ) of packed words.
      const std::byte* word = from.is_awq ? packed.data() + k * row_bytes
                                          : packed.data() + (k / per_word * outputs + n) * 4;
      const auto code =
          packed_number(word, from.is_awq ? place_in_row(from, n) : k % per_word, width);
      const std::uint32_t null = zeros[groups[k] * outputs + n];
      const int number = static_cast<int>(code) - static_cast<int>(null);
      out[n * inputs + k] = static_cast<float>(number) * factors[groups[k] * outputs + n];
    }
  }
  return out;
}

}  // namespace

Result<DecodedWeight> grouped_decoder(const QuantSource& from) {
  SHW_TRY(const GroupedWeight weight, grouped_weight(from));
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", {weight.outputs, weight.inputs});
  decoded.rows_at_once = weight.outputs;
  decoded.decode = [checkpoint = from.checkpoint, weight](std::int64_t, std::int64_t) {
    return decode_grouped(*checkpoint, weight);
  };
  decoded.check_values = [checkpoint = from.checkpoint, weight]() -> Status {
    SHW_CHECK(groups_of_inputs(*checkpoint, weight));
    if (weight.is_symmetric) {
      SHW_CHECK(zero_points(*checkpoint, weight));
    }
    return {};
  };
  return decoded;
}

}  // namespace shw
