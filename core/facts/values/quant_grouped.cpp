// GPTQ and AWQ.
#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/values/packed_code.h"
#include "core/facts/values/quant_packed.h"

namespace shw {
namespace {

struct GroupedWeight {
  TensorId weight{}, scale{}, zero{};
  std::optional<TensorId> order = {};  // of groups
  std::int64_t bits = 0, inputs = 0, outputs = 0, groups = 0;
  std::int64_t group = 0;  // inputs that share a scale, without an order
  bool is_awq = false;
  CodeWords words = {};
  bool has_whole_zeros = false;  // else 1 is added to each code of a zero point
  bool is_symmetric = false;     // by the config: all zero points are the code in the middle
  bool is_in_order = false;      // by the config: groups
};

// A row of words with `all_bits` has whole codes of all kinds that are decoded.
std::optional<std::int64_t> code_count_of_words(const CodeWords& form, std::int64_t words) {
  const auto all_bits = checked_mul(words, std::int64_t{form.word_bits});
  const auto bits = std::int64_t{form.bits};
  if (!all_bits || *all_bits % bits != 0) return std::nullopt;
  // Where codes cross words, libraries pack 32 codes at a time.
  const std::int64_t codes = *all_bits / bits;
  const bool has_blocks = form.has_planes || form.word_bits % form.bits != 0;
  return has_blocks && codes % kCodesOfBlock != 0 ? std::nullopt : std::optional(codes);
}

// The number of bits that the extents of scales and zero points make.
std::optional<std::int64_t> packed_bits_of_zero_points(std::int64_t outputs, std::int64_t words,
                                                       std::int64_t word_bits) {
  const auto all = checked_mul(words, word_bits);
  if (!all || outputs < 1 || *all % outputs != 0) return std::nullopt;
  return *all / outputs;
}

// Sets the inputs that share a scale.
Status set_group_of_each_input(const QuantSource& from, GroupedWeight& weight) {
  const QuantSettings& config = from.config;
  if (config.has_overrides || (!config.group && weight.order)) {
    if (weight.order) return {};
    if (weight.inputs % weight.groups != 0)
      return from.unreadable_error("has a group size that is in no config");
    weight.group = weight.inputs / weight.groups;
    return {};
  }
  weight.group = config.group && *config.group > 0 ? *config.group : weight.inputs;
  // GPTQ's libraries pack multiples of 32 inputs.
  constexpr std::int64_t kMinInputs = 32;
  if (!weight.order && !weight.is_awq && weight.inputs % kMinInputs != 0)
    return from.unfit(fmt::format("has {} inputs, not a multiple of 32", weight.inputs));
  if (ceil_divide(weight.inputs, weight.group) != weight.groups)
    return from.unfit(fmt::format("has {} of scales, and its inputs make {}",
                                  plural(static_cast<std::uint64_t>(weight.groups), "group"),
                                  ceil_divide(weight.inputs, weight.group)));
  if (weight.inputs % weight.group != 0 &&
      (weight.is_awq || !std::has_single_bit(static_cast<std::uint64_t>(weight.group))))
    return from.unfit(fmt::format("has {} inputs, not a multiple of the group size {}",
                                  weight.inputs, weight.group));
  return {};
}

// How the codes are packed, by the config and the dtype of the words.
Result<CodeWords> code_packing_from_config(const QuantSource& from, TensorId zero,
                                           std::int64_t bits) {
  const QuantSettings& config = from.config;
  const bool is_awq = config.method == "awq";
  const Dtype dtype = from.c().dtype(from.pair.weight);
  const auto word_bits = static_cast<std::int64_t>(size_of(dtype)) * 8;
  if (word_bits != config.word_bits || from.c().dtype(zero) != dtype)
    return from.unfit(
        fmt::format("is packed in words of {} and zero points of {}, and its config says {} bits",
                    name(dtype), name(from.c().dtype(zero)), config.word_bits));
  const bool divides = bits == 2 || bits == 4 || bits == 8;
  const bool crosses = bits == 3 || bits == 5 || bits == 6 || bits == 7;
  // Only AutoRound packs other bits than 4 in AWQ's order, and others than 3 across words.
  const bool is_known = (divides && (!is_awq || bits == 4)) || (bits == 3 && !is_awq) ||
                        (crosses && bits != 3 && config.has_bit_planes.has_value());
  if (!is_known || (crosses && word_bits != 32))
    return from.unreadable_error("has a number of bits that is not decoded");
  return CodeWords{.bits = static_cast<unsigned>(bits),
                   .word_bits = static_cast<unsigned>(word_bits),
                   .has_planes = config.has_bit_planes == true};
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
  if (config.has_overrides)
    weight.bits = packed_bits_of_zero_points(scales[1], zeros[1], config.word_bits).value_or(0);
  SHW_TRY(weight.words, code_packing_from_config(from, *zero, weight.bits));
  const auto codes = code_count_of_words(weight.words, weight.is_awq ? shape[1] : shape[0]);
  if (!codes)
    return from.unfit(
        fmt::format("has {} words in a row, which do not hold whole blocks of {} "
                    "codes of {} bits",
                    weight.is_awq ? shape[1] : shape[0], kCodesOfBlock, weight.bits));
  weight.inputs = weight.is_awq ? shape[0] : *codes;
  weight.outputs = weight.is_awq ? *codes : shape[1];
  weight.groups = scales[0];
  if (scales[1] != weight.outputs || weight.groups < 1 || zeros[0] != weight.groups ||
      code_count_of_words(weight.words, zeros[1]) != weight.outputs)
    return from.unfit("has scales or zero points that do not fit it");
  if (!weight.is_awq) weight.order = order;
  if (weight.order && volume(c.shape(*weight.order)) != weight.inputs)
    return from.unfit("has an order of groups that does not fit it");
  // AutoGPTQ, GPTQModel and vLLM take groups in order unless desc_act is true.
  if (!weight.order && !weight.is_awq && weight.groups > 1 && config.has_group_order == true)
    return from.unfit("has no group order (g_idx), but its config says desc_act");
  SHW_CHECK(set_group_of_each_input(from, weight));
  weight.has_whole_zeros = config.has_whole_zeros || weight.is_awq || weight.words.has_planes;
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
      return fail(ErrorKind::kDamaged, "refers to a group that has no scale");
    groups[k] = static_cast<std::size_t>(own);
    if (from.is_in_order && groups[k] != in_order)
      return fail(ErrorKind::kDamaged,
                  "has reordered groups (g_idx), but its config says desc_act false");
  }
  return groups;
}

constexpr std::size_t kAwqOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// The place of a column among the codes of its row.
std::size_t awq_position_in_row(const GroupedWeight& from, std::size_t column) {
  return from.is_awq ? column / 8 * 8 + kAwqOrder[column % 8] : column;
}

// Adds 1 to each code of a word. GPTQModel subtracts and adds them all at once, so that a code of 0
// borrows from the next one.
void add_one_to_each_code(const CodeWords& form, Bytes& words) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - form.word_bits);
  const std::uint64_t ones = all / ((std::uint64_t{1} << form.bits) - 1);
  const std::size_t bytes = form.word_bits / 8;
  for (std::size_t at = 0; at + bytes <= words.size(); at += bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, words.data() + at, bytes);
    word += ones;
    std::memcpy(words.data() + at, &word, bytes);
  }
}

// True for 3-bit zero points in the first format of GPTQModel up to 6.0. It subtracts a wrong
// constant (not 1 per code) when it saves, and adds it again when it loads.
bool are_zeros_of_old_gptqmodel(const GroupedWeight& from, const Bytes& stored) {
  constexpr std::uint32_t kSubtractedFromCodes[3] = {0x24924924, 0x92492492, 0x49249249};
  if (from.words.bits != 3 || from.has_whole_zeros ||
      stored.size() % sizeof kSubtractedFromCodes != 0)
    return false;
  Bytes words = stored;
  for (std::size_t at = 0; at < words.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + at, sizeof word);
    word += kSubtractedFromCodes[at / sizeof word % 3];
    std::memcpy(words.data() + at, &word, sizeof word);
  }
  const std::size_t codes = words.size() * 8 / 3;
  for (std::size_t i = 0; i < codes; ++i)
    if (packed_code(from.words, words.data(), 1, i) != 4) return false;
  return true;
}

// Zero points [groups, outputs].
Result<std::vector<std::uint32_t>> zero_points(const Checkpoint& c, const GroupedWeight& from) {
  SHW_TRY(Bytes packed, read_box_bytes(c, from.zero, whole(copy_of(c.shape(from.zero)))));
  const CodeWords& form = from.words;
  const bool divides = form.word_bits % form.bits == 0;
  if (!from.has_whole_zeros && divides) add_one_to_each_code(form, packed);
  const std::uint32_t middle = 1U << (form.bits - 1), mask = (1U << form.bits) - 1;
  const std::size_t outputs = static_cast<std::size_t>(from.outputs),
                    row_bytes = outputs * form.bits / 8;
  std::vector<std::uint32_t> zeros(static_cast<std::size_t>(from.groups) * outputs);
  for (std::size_t i = 0; i < zeros.size(); ++i) {
    zeros[i] = packed_code(form, packed.data() + i / outputs * row_bytes, 1,
                           awq_position_in_row(from, i % outputs));
    if (!from.has_whole_zeros && !divides) zeros[i] = (zeros[i] + 1) & mask;
    if (from.is_symmetric && zeros[i] != middle)
      return fail(ErrorKind::kDamaged,
                  are_zeros_of_old_gptqmodel(from, packed)
                      ? "has 3-bit zero points as GPTQModel up to 6.0 wrote them, which other "
                        "programs read as different numbers"
                      : fmt::format("has the zero point {}, and its config says that all are {} "
                                    "(sym)",
                                    zeros[i], middle));
  }
  return zeros;
}

QuantFloats decode_grouped(const Checkpoint& c, const GroupedWeight& from) {
  SHW_TRY(const Bytes packed, read_box_bytes(c, from.weight, whole(copy_of(c.shape(from.weight)))));
  SHW_TRY(const std::vector<std::uint32_t> zeros, zero_points(c, from));
  SHW_TRY(const std::vector<float> factors, read_all_floats(c, from.scale));
  SHW_TRY(const std::vector<std::size_t> groups, groups_of_inputs(c, from));
  const std::size_t outputs = static_cast<std::size_t>(from.outputs),
                    inputs = static_cast<std::size_t>(from.inputs);
  const std::size_t row_bytes = outputs * from.words.bits / 8;  // of packed columns
  std::vector<float> out(inputs * outputs);
  for (std::size_t k = 0; k < inputs; ++k) {
    for (std::size_t n = 0; n < outputs; ++n) {
      // The words of a code are in a column (GPTQ) or a row (AWQ).
      const auto code =
          from.is_awq
              ? packed_code(from.words, packed.data() + k * row_bytes, 1,
                            awq_position_in_row(from, n))
              : packed_code(from.words, packed.data() + n * from.words.word_bits / 8, outputs, k);
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
