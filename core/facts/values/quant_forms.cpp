#include "core/facts/values/quant_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/facts/values/quant_mx.h"
#include "core/facts/values/quant_numbers.h"
#include "core/facts/values/quant_scaled.h"
#include "core/facts/values/quant_torchao.h"
#include "core/formats/table.h"

namespace shw {
namespace {

// Weights with 8-bit elements; int8 with exponents as scales is FP4, two numbers per byte.
Result<DecodedWeight> byte_form(const QuantSource& from) {
  const bool is_fp4 = from.c().dtype(from.pair.weight) == Dtype::kInt8 && has_exponents(from);
  return is_fp4 ? mx_rows_form(from, std::string(from.c().fqn(from.pair.weight)))
                : scaled_form(from, std::nullopt, 1.0f);
}

// Stacked experts of NVFP4 whose groups and pairs of numbers are along the inputs.
Result<DecodedWeight> nvfp4_experts_form(const QuantSource& from) {
  const Extents shape = copy_of(from.weight());
  const TensorId scale = *from.companion(0), one = *from.companion(1);
  if (volume(from.c().shape(one)) != 1 || !from.is_float(one))
    return from.unfit("has no single number of the tensor");
  const bool as_bytes = from.c().dtype(scale) == Dtype::kUint8;
  DecodedWeight decoded = from.result(from.pair.stem, {shape[0], shape[1] * 2, shape[2]});
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale, one, shape,
                    as_bytes](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes bytes, bytes_in_box(c, weight, rows_box(shape, first, count)));
    SHW_TRY(std::vector<float> scales,
            float8_in_box(c, scale, rows_box(c.shape(scale), first, count), as_bytes));
    SHW_TRY(std::vector<float> global, all_floats(c, one));
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
Result<DecodedWeight> nvfp4_form(const QuantSource& from, std::size_t companion, bool divides) {
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0), one = from.companion(companion);
  if (scale && one && !divides && has_groups_of_inputs(shape, from.c().shape(*scale)))
    return nvfp4_experts_form(from);
  if (!scale || !one) return from.unfit("has no scales of two levels next to it");
  if (shape.size() != 2)
    return from.unreadable_error("is not a matrix of FP4 with scales of two levels");
  if (volume(from.c().shape(*one)) != 1 || !from.is_float(one))
    return from.unfit("has no single number of the tensor");
  const ExtentsView scale_shape = from.c().shape(*scale);
  const std::int64_t columns = shape[1] * 2;
  if (scale_shape.size() != 2 || scale_shape[0] != shape[0] ||
      scale_shape[1] != columns / kNvGroup || columns % kNvGroup != 0)
    return is_kernel_order(scale_shape, elements_of_fp4(shape), kNvGroup)
               ? from.unreadable_error("has scales in the order of a kernel")
               : from.unfit("has scales that do not fit its rows");
  const bool as_bytes = from.c().dtype(*scale) == Dtype::kUint8;
  const bool is_parameter = from.c().fqn(from.pair.weight) == from.pair.stem;
  DecodedWeight decoded =
      from.result(from.pair.stem + (is_parameter ? "" : ".weight"), {shape[0], columns});
  decoded.decode = [checkpoint = from.checkpoint, weight = from.pair.weight, scale = *scale,
                    one = *one, columns, divides,
                    as_bytes](std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes bytes, bytes_in_box(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(std::vector<float> scales,
            float8_in_box(c, scale, rows_box(c.shape(scale), first, count), as_bytes));
    SHW_TRY(std::vector<float> global, all_floats(c, one));
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

// GPTQ packs 32 / bits rows into one; AWQ packs as many columns, in its own order. Both store the
// matrix with inputs as rows, and zero points packed along columns.
Result<DecodedWeight> grouped_form(const QuantSource& from) {
  const QuantConfig& config = from.config;
  const bool is_awq = config.method == "awq";
  const auto scale = from.companion(0), zero = from.companion(1), order = from.companion(2);
  if (!config.bits || (*config.bits != 4 && *config.bits != 8 && *config.bits != 2) ||
      (is_awq && *config.bits != 4))
    return from.unreadable_error("has a number of bits that is not decoded");
  const std::int64_t bits = *config.bits, each = 32 / bits;
  const ExtentsView shape = from.weight();
  if (!scale || !zero || shape.size() != 2 || from.c().shape(*scale).size() != 2 ||
      !from.is_float(scale))
    return from.unfit("is not a matrix with scales and zero points");
  const std::int64_t inputs = is_awq ? shape[0] : shape[0] * each;
  const std::int64_t outputs = is_awq ? shape[1] * each : shape[1];
  const ExtentsView scales = from.c().shape(*scale), zeros = from.c().shape(*zero);
  if (scales[1] != outputs || scales[0] < 1 || zeros.size() != 2 || zeros[0] != scales[0] ||
      zeros[1] * each != outputs || inputs < 1)
    return from.unfit("has scales or zero points that do not fit it");
  const std::int64_t group = config.group && *config.group > 0 ? *config.group : inputs;
  const bool by_order = order && !is_awq;
  if (by_order && (volume(from.c().shape(*order)) != inputs ||
                   size_of(from.c().dtype(*order)) != sizeof(std::int32_t)))
    return from.unfit("has an order of groups that does not fit it");
  if (!by_order && !is_awq && config.has_group_order.value_or(true)) {
    const char* why = "has no order of groups (g_idx), and its config does not say desc_act false";
    // AutoRound and GPTQ's first savers have none where groups are in order.
    return config.has_group_order ? from.unfit(why) : from.unreadable_error(why);
  }
  if (!config.has_overrides && (!by_order || config.group) &&
      ceil_divide(inputs, group) != scales[0])
    return from.unfit(fmt::format("has {} of scales, and its inputs make {}",
                                  plural(static_cast<std::uint64_t>(scales[0]), "group"),
                                  ceil_divide(inputs, group)));
  if (config.has_overrides && !by_order && ceil_divide(inputs, group) > scales[0])
    return from.unfit("has fewer groups of scales than its rows take");
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", {outputs, inputs});
  decoded.rows_at_once = outputs;
  const int offset = config.has_whole_zeros || is_awq ? 0 : 1;
  decoded.decode = [=, checkpoint = from.checkpoint, weight = from.pair.weight](
                       std::int64_t, std::int64_t) -> QuantFloats {
    constexpr std::size_t kAwqOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes packed, bytes_in_box(c, weight, whole(copy_of(c.shape(weight)))));
    SHW_TRY(Bytes zeros_packed, bytes_in_box(c, *zero, whole(copy_of(c.shape(*zero)))));
    SHW_TRY(std::vector<float> factors, all_floats(c, *scale));
    Bytes groups;
    if (by_order) {
      SHW_TRY(groups, bytes_in_box(c, *order, whole(copy_of(c.shape(*order)))));
    }
    const auto width = static_cast<unsigned>(bits);
    const auto per_word = static_cast<std::size_t>(each), n_out = static_cast<std::size_t>(outputs);
    const std::size_t groups_there = factors.size() / n_out;
    std::vector<float> out(static_cast<std::size_t>(inputs) * n_out);
    for (std::size_t k = 0; k < static_cast<std::size_t>(inputs); ++k) {
      std::size_t g = k / static_cast<std::size_t>(group);
      if (by_order) {
        std::int32_t own = 0;
        std::memcpy(&own, groups.data() + k * sizeof own, sizeof own);
        g = own < 0 ? groups_there : static_cast<std::size_t>(own);
      }
      if (g >= groups_there)
        return fail(ErrorKind::kDamaged, "names a group of scales that is not there");
      for (std::size_t n = 0; n < n_out; ++n) {
        const std::size_t place = is_awq ? n / 8 * 8 + kAwqOrder[n % 8] : n;
        // The word is in a column (GPTQ) or a row (AWQ) of packed words.
        const std::byte* word = is_awq ? packed.data() + k * (n_out / per_word) * 4
                                       : packed.data() + (k / per_word * n_out + n) * 4;
        const auto code = packed_number(word, is_awq ? place : k % per_word, width);
        const auto null =
            packed_number(zeros_packed.data() + g * (n_out / per_word) * 4, place, width);
        const int number = static_cast<int>(code) - static_cast<int>(null) - offset;
        out[n * static_cast<std::size_t>(inputs) + k] =
            static_cast<float>(number) * factors[g * n_out + n];
      }
    }
    return out;
  };
  return decoded;
}

// bitsandbytes: blocks of 4-bit codes into a table of 16 numbers, high halves first. The maxima of
// the blocks may be quantised themselves.
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

QuantFloats largest_of_blocks(const Checkpoint& c, const QuantPair& pair, const NfState& state) {
  if (c.dtype(*pair.beside[0]) != Dtype::kUint8) return all_floats(c, *pair.beside[0]);
  if (!pair.beside[3] || !pair.beside[4] || state.nested_block < 1)
    return fail(ErrorKind::kUnsupported, "has quantised scales without what decodes them");
  SHW_TRY(Bytes codes, bytes_in_box(c, *pair.beside[0], whole(copy_of(c.shape(*pair.beside[0])))));
  SHW_TRY(std::vector<float> outer, all_floats(c, *pair.beside[3]));
  SHW_TRY(std::vector<float> table, all_floats(c, *pair.beside[4]));
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

bool has_fitting_maxima(const QuantSource& from, const NfState& state, std::int64_t elements) {
  const Checkpoint& c = from.c();
  const auto count = volume(c.shape(*from.companion(0)));
  if (count != ceil_divide(elements, state.block)) return false;
  if (c.dtype(*from.companion(0)) != Dtype::kUint8) return from.is_float(from.companion(0));
  const auto outer = from.companion(3), table = from.companion(4);
  return state.nested_block > 0 && from.is_float(outer) && from.is_float(table) &&
         volume(c.shape(*outer)) == ceil_divide(*count, state.nested_block) &&
         volume(c.shape(*table)) == 256;
}

Result<DecodedWeight> nf_form(const QuantSource& from) {
  const Checkpoint& c = from.c();
  if (!from.companion(0) || !from.companion(1) || !from.companion(2))
    return from.unfit("has no table or no state next to it");
  SHW_TRY(Bytes json,
          bytes_in_box(c, *from.companion(2), whole(copy_of(c.shape(*from.companion(2))))));
  const auto state = nf_state(json);
  const std::int64_t elements = state ? checked_volume(state->shape).value_or(0) : 0;
  const auto stored = volume(from.weight()).value_or(0);
  if (elements < 1 || state->shape.empty() || state->block < 2 ||
      stored != ceil_divide(elements, 2) || volume(c.shape(*from.companion(1))) != 16 ||
      !from.is_float(from.companion(1)))
    return from.unfit("has a state or a table that does not fit its shape and blocks");
  if (!has_fitting_maxima(from, *state, elements))
    return from.unfit("has scales that do not fit its blocks");
  DecodedWeight decoded = from.result(std::string(c.fqn(from.pair.weight)), state->shape);
  decoded.rows_at_once = state->shape[0];
  decoded.decode = [checkpoint = from.checkpoint, pair = from.pair, state = *state, elements](
                       std::int64_t, std::int64_t) -> QuantFloats {
    const Checkpoint& source = *checkpoint;
    SHW_TRY(Bytes codes,
            bytes_in_box(source, pair.weight, whole(copy_of(source.shape(pair.weight)))));
    SHW_TRY(std::vector<float> table, all_floats(source, *pair.beside[1]));
    SHW_TRY(std::vector<float> largest, largest_of_blocks(source, pair, state));
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

// MLX: codes along a row, lowest bits first; number = code * scale of the group + bias.
Result<DecodedWeight> mlx_form(const QuantSource& from) {
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0), bias = from.companion(1);
  const bool is_mx = !bias && from.config.bits == 4 && from.config.group == 32;
  if (is_mx && has_exponents(from)) return mx_rows_form(from, from.pair.stem + ".weight");
  if (!from.config.bits || shape.size() < 2 ||
      (*from.config.bits != 2 && *from.config.bits != 4 && *from.config.bits != 8))
    return from.unreadable_error("has no bits that say how it is decoded");
  if (!from.is_float(scale) || !from.is_float(bias) ||
      !same(from.c().shape(*scale), from.c().shape(*bias)))
    return from.unfit("has no scales and biases that fit each other");
  const auto bits = static_cast<unsigned>(*from.config.bits);
  Extents decoded_shape = copy_of(shape);
  decoded_shape.back() *= 32 / *from.config.bits;
  Extents rows = copy_of(shape.first(shape.size() - 1));
  const ExtentsView scales = from.c().shape(*scale);
  if (scales.size() != shape.size() || !same(scales.first(rows.size()), rows) ||
      scales.back() < 1 || decoded_shape.back() % scales.back() != 0 ||
      (from.config.group && !from.config.has_overrides &&
       decoded_shape.back() / scales.back() != *from.config.group))
    return from.unfit("has scales that do not fit its rows");
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", decoded_shape);
  const auto group = static_cast<std::size_t>(decoded_shape.back() / scales.back());
  const auto row_length = static_cast<std::size_t>(decoded_shape.back());
  decoded.decode = [=, checkpoint = from.checkpoint, weight = from.pair.weight](
                       std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& c = *checkpoint;
    SHW_TRY(Bytes words, bytes_in_box(c, weight, rows_box(c.shape(weight), first, count)));
    SHW_TRY(std::vector<float> factors,
            floats_in_box(c, *scale, rows_box(c.shape(*scale), first, count)));
    SHW_TRY(std::vector<float> biases,
            floats_in_box(c, *bias, rows_box(c.shape(*bias), first, count)));
    const std::size_t row_bytes = row_length * bits / 8;
    std::vector<float> out(words.size() / row_bytes * row_length);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto code =
          packed_number(words.data() + i / row_length * row_bytes, i % row_length, bits);
      const float product = static_cast<float>(code) * factors[i / group];
      out[i] = product + biases[i / group];
    }
    return out;
  };
  return decoded;
}

// compressed-tensors, pack-quantized: codes of 4 or 8 bits along a row; the middle code is 0.
Result<DecodedWeight> packed_form(const QuantSource& from) {
  const Checkpoint& c = from.c();
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0), said = from.companion(1);
  if (from.companion(2) || from.companion(3))
    return from.unreadable_error("has zero points or an order of groups, which are not decoded");
  if (from.config.has_zero_points) return from.unfit("has no zero points, and its config has");
  if (from.config.has_group_order == true)
    return from.unfit("has no order of groups (weight_g_idx), and its config has");
  if (!from.is_float(scale) || !said) return from.unfit("has no scales or no shape next to it");
  if (shape.size() != 2) return from.unreadable_error("is not a matrix");
  SHW_TRY(std::vector<float> whole_shape, all_floats(c, *said));
  constexpr float kMostColumns = 1e9f;
  if (whole_shape.size() != 2 || static_cast<float>(shape[0]) != whole_shape[0] ||
      !(whole_shape[1] >= 1 && whole_shape[1] <= kMostColumns))
    return from.unfit("has a shape next to it that does not fit");
  const auto columns = static_cast<std::int64_t>(whole_shape[1]);
  const ExtentsView scales = c.shape(*scale);
  const std::int64_t bits = from.config.weight_bits.value_or(columns * 8 <= shape[1] * 32 ? 8 : 4);
  if (bits != 4 && bits != 8)
    return from.unreadable_error("has a number of bits that is not decoded");
  if (ceil_divide(columns * bits, 32) != shape[1])
    return from.unfit("has a shape next to it that does not fit");
  if (scales.size() != 2 || scales[0] != shape[0] || scales[1] < 1 || columns % scales[1] != 0)
    return from.unfit("has scales that do not fit its rows");
  // Without a group in the config, a scale is of a whole row.
  const std::int64_t group = std::max<std::int64_t>(from.config.weight_group.value_or(-1), -1);
  if (from.config.weight_bits && ceil_divide(columns, group < 1 ? columns : group) != scales[1])
    return from.unfit("has scales of other groups than its config says");
  DecodedWeight decoded = from.result(from.pair.stem + ".weight", {shape[0], columns});
  decoded.decode = [=, checkpoint = from.checkpoint, weight = from.pair.weight](
                       std::int64_t first, std::int64_t count) -> QuantFloats {
    const Checkpoint& source = *checkpoint;
    SHW_TRY(Bytes words,
            bytes_in_box(source, weight, rows_box(source.shape(weight), first, count)));
    SHW_TRY(std::vector<float> factors,
            floats_in_box(source, *scale, rows_box(source.shape(*scale), first, count)));
    const auto row = static_cast<std::size_t>(columns);
    const auto of_group = row / (factors.size() / static_cast<std::size_t>(count));
    const std::size_t row_bytes = words.size() / static_cast<std::size_t>(count);
    std::vector<float> out(static_cast<std::size_t>(count) * row);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto code =
          packed_number(words.data() + i / row * row_bytes, i % row, static_cast<unsigned>(bits));
      out[i] =
          static_cast<float>(static_cast<int>(code) - (1 << (bits - 1))) * factors[i / of_group];
    }
    return out;
  };
  return decoded;
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
  QuantSource from{std::move(checkpoint), pair, config, family.is_said};
  const auto of_class = classes.find(decoded_name(from));
  if (of_class != classes.end()) from.of_class = &of_class->second;
  // Limit, so that extents multiplied by the numbers per word fit in 64 bits; excludes empty
  // weights.
  constexpr std::int64_t kMostElements = std::int64_t{1} << 45;
  const auto elements = volume(from.weight());
  if (!elements || *elements < 1 || *elements > kMostElements)
    return from.unreadable_error("has no elements, or too many to be decoded");
  switch (family.scheme->form) {
    case QuantForm::kScaled:
      return byte_form(from);
    case QuantForm::kInt8Rows:
      if (pair.beside[0] && volume(from.c().shape(*pair.beside[0])) != from.weight()[0])
        return from.unfit("has scales that are not one per row");
      return scaled_form(from, std::nullopt, 127.0f);
    case QuantForm::kMx:
      return mx_form(from);
    case QuantForm::kTwoLevels:
      return nvfp4_form(from, 1, false);
    case QuantForm::kTwoLevelsDivided:
      return nvfp4_form(from, 1, true);
    case QuantForm::kMxRows:
      return mx_rows_form(from, from.pair.stem + ".weight");
    case QuantForm::kMx8:
      return mx8_form(from);
    case QuantForm::kScaledBytes:
      return scaled_bytes_form(from);
    case QuantForm::kGrouped:
      return grouped_form(from);
    case QuantForm::kNf:
      return nf_form(from);
    case QuantForm::kMlx:
      return mlx_form(from);
    case QuantForm::kPacked:
      return packed_form(from);
    case QuantForm::kAffine:
    case QuantForm::kInt4:
    case QuantForm::kInt4Tiles:
    case QuantForm::kMxOfTorchao:
    case QuantForm::kNvOfTorchao:
      return torchao_form(from, family.scheme->form);
  }
  return from.unreadable_error("is of a form that is not decoded");
}

}  // namespace shw
