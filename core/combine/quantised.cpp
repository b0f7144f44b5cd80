#include "core/combine/quantised.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/base/parse_text.h"
#include "core/combine/model_config.h"
#include "core/combine/module_names.h"
#include "core/combine/quantise_rows.h"
#include "core/combine/tensor_rows.h"
#include "core/facts/names/quant_config.h"
#include "core/facts/values/computed_tensors.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::set<std::string, std::less<>>;

constexpr std::string_view kWeightEnd = ".weight";
constexpr std::int64_t kFp4Group = 32;
constexpr std::int64_t kMaxBlock = 1 << 16;

tl::unexpected<Error> quantise_error(std::string why, std::string advice = {}) {
  return fail(ErrorKind::kUnsupported, std::move(why), {}, std::move(advice));
}

// True for modules that loaders do not quantise: embeddings, heads and routers.
bool is_never_quantised_module(std::string_view module) {
  constexpr auto kHeads = std::to_array<std::string_view>(
      {"lm_head", "output", "embed_out", "score", "classifier", "gate", "router"});
  return std::ranges::find(kHeads, last_part(module)) != kHeads.end() ||
         is_embedding_module(module);
}

bool has_numbers(const Checkpoint& c, TensorId tensor) {
  const Dtype dtype = c.dtype(tensor);
  return dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16;
}

Status refuse_quantised_already(const Checkpoint& c) {
  const bool has_config = c.directory() != nullptr && read_quant_config(*c.directory());
  for (TensorId tensor : c.tensors()) {
    const bool is_narrow = name(c.dtype(tensor)).starts_with("float8");
    if (is_narrow || has_config)
      return quantise_error("weights are quantised already",
                            "--dequantise decodes them first; both may be given.");
  }
  return {};
}

// --- FP8

struct Fp8Weight {
  ReadableTensor from;
  QuantiseOptions wanted;

  bool fits() const {
    return from.shape.size() == 2 && from.shape[0] % wanted.block_rows == 0 &&
           from.shape[1] % wanted.block_columns == 0 && from.shape[0] > 0 && from.shape[1] > 0;
  }
  Result<Fp8Rows> rows(std::int64_t first, std::int64_t count) const {
    SHW_TRY(const std::vector<float> numbers,
            read_floats(from, rows_box(from.shape, first, count)));
    return quantise_fp8(numbers, static_cast<std::size_t>(from.shape[1]),
                        static_cast<std::size_t>(wanted.block_rows),
                        static_cast<std::size_t>(wanted.block_columns),
                        wanted.scheme == QuantiseScheme::kFp8BlockPowers);
  }
};

// Encodes powers of two as float8_e8m0fnu, which stores only the exponent.
Bytes exponents_of(const std::vector<float>& powers) {
  Bytes bytes(powers.size());
  std::ranges::transform(powers, bytes.begin(), [](float power) {
    return static_cast<std::byte>(std::bit_cast<std::uint32_t>(power) >> 23);
  });
  return bytes;
}

void add_fp8(const std::string& fqn, const Fp8Weight& weight, ComputedPart& part) {
  const Extents& shape = weight.from.shape;
  const QuantiseOptions& wanted = weight.wanted;
  const bool powers = wanted.scheme == QuantiseScheme::kFp8BlockPowers;
  const Dtype scale_dtype = powers ? Dtype::kFloat8E8m0fnu : Dtype::kFloat32;
  ComputedTensor elements{.fqn = fqn,
                          .dtype = Dtype::kFloat8E4m3fn,
                          .shape = shape,
                          .rows_at_once = wanted.block_rows,
                          .make = {},
                          .is_rounded = true};
  elements.make = [weight](std::int64_t first, std::int64_t count) -> Result<Bytes> {
    SHW_TRY(Fp8Rows rows, weight.rows(first, count));
    return std::move(rows.elements);
  };
  ComputedTensor scales{.fqn = fqn + "_scale_inv",
                        .dtype = scale_dtype,
                        .shape = {shape[0] / wanted.block_rows, shape[1] / wanted.block_columns},
                        .make = {}};
  // Computes one row of blocks at a time, to bound memory.
  scales.make = [weight, powers](std::int64_t first, std::int64_t count) -> Result<Bytes> {
    std::vector<float> all;
    for (std::int64_t row = first; row < first + count; ++row) {
      SHW_TRY(const Fp8Rows rows,
              weight.rows(row * weight.wanted.block_rows, weight.wanted.block_rows));
      all.insert(all.end(), rows.scales.begin(), rows.scales.end());
    }
    return powers ? exponents_of(all) : rounded_to(Dtype::kFloat32, all);
  };
  part.tensors.push_back(std::move(elements));
  part.tensors.push_back(std::move(scales));
}

Result<Json> quantise_to_fp8(const std::shared_ptr<const Checkpoint>& checkpoint,
                             const QuantiseOptions& wanted, const Names& aside,
                             ComputedPart& part) {
  std::vector<std::string> kept;
  for (TensorId tensor : checkpoint->tensors()) {
    const std::string fqn(checkpoint->fqn(tensor));
    // Tensors with more dimensions (stacked experts) are kept and listed by name, because their
    // loaders would otherwise expect scales for them.
    if (aside.contains(fqn) || checkpoint->shape(tensor).size() < 2) continue;
    const std::string module(module_of(fqn));
    const Fp8Weight weight{readable(checkpoint, tensor), wanted};
    if (!fqn.ends_with(kWeightEnd) || is_never_quantised_module(module) ||
        !has_numbers(*checkpoint, tensor) || !weight.fits()) {
      if (kept.empty() || kept.back() != module) kept.push_back(module);
      continue;
    }
    part.replaced.insert(tensor);
    add_fp8(fqn, weight, part);
  }
  Json config{{"quant_method", "fp8"},
              {"activation_scheme", "dynamic"},
              {"fmt", "e4m3"},
              {"weight_block_size", {wanted.block_rows, wanted.block_columns}},
              {"modules_to_not_convert", kept}};
  if (wanted.scheme == QuantiseScheme::kFp8BlockPowers) config["scale_fmt"] = "ue8m0";
  return config;
}

// --- MXFP4

void add_fp4(const std::string& fqn, const ReadableTensor& from, ComputedPart& part) {
  const std::int64_t experts = from.shape[0], inputs = from.shape[1], outputs = from.shape[2];
  for (const bool as_scales : {false, true}) {
    ComputedTensor tensor{.fqn = fqn + (as_scales ? "_scales" : "_blocks"),
                          .dtype = Dtype::kUint8,
                          .shape = {experts, outputs, inputs / kFp4Group},
                          .make = {},
                          .is_rounded = true};
    if (!as_scales) tensor.shape.push_back(kFp4Group / 2);
    tensor.make = [from, as_scales, inputs, outputs](std::int64_t first,
                                                     std::int64_t count) -> Result<Bytes> {
      Bytes all;
      for (std::int64_t expert = first; expert < first + count; ++expert) {
        SHW_TRY(const std::vector<float> numbers,
                read_floats(from, rows_box(from.shape, expert, 1)));
        const Fp4Rows rows = quantise_fp4(numbers, static_cast<std::size_t>(inputs),
                                          static_cast<std::size_t>(outputs));
        const Bytes& bytes = as_scales ? rows.scales : rows.blocks;
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
      return all;
    };
    part.tensors.push_back(std::move(tensor));
  }
}

Result<Json> quantise_to_mxfp4(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const Names& aside, ComputedPart& part) {
  for (TensorId tensor : checkpoint->tensors()) {
    const std::string fqn(checkpoint->fqn(tensor));
    if (aside.contains(fqn)) continue;
    const ExtentsView shape = checkpoint->shape(tensor);
    const bool is_experts =
        fqn.ends_with(".experts.gate_up_proj") || fqn.ends_with(".experts.down_proj");
    if (!is_experts || shape.size() != 3 || shape[1] % kFp4Group != 0 ||
        volume(shape).value_or(0) == 0 || checkpoint->dtype(tensor) != Dtype::kBfloat16)
      continue;
    part.replaced.insert(tensor);
    add_fp4(fqn, readable(checkpoint, tensor), part);
  }
  return Json{
      {"quant_method", "mxfp4"},
      {"modules_to_not_convert",
       {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}};
}

std::optional<std::pair<std::int64_t, std::int64_t>> parse_block_size(std::string_view text) {
  std::pair<std::int64_t, std::int64_t> block;
  const std::size_t by = text.find('x');
  if (by == std::string_view::npos) return std::nullopt;
  for (auto [part, number] : {std::pair{text.substr(0, by), &block.first},
                              std::pair{text.substr(by + 1), &block.second}}) {
    const auto size = parse_number<std::int64_t>(part);
    if (!size || *size < 1 || *size > kMaxBlock) return std::nullopt;
    *number = *size;
  }
  return block;
}

}  // namespace

Result<QuantiseOptions> parse_quantise_options(const std::string& text) {
  QuantiseOptions wanted;
  const std::size_t comma = text.find(',');
  const std::string scheme = text.substr(0, comma);
  bool is_right = true;
  if (scheme == "fp8-block-ue8m0")
    wanted.scheme = QuantiseScheme::kFp8BlockPowers;
  else if (scheme == "mxfp4")
    wanted.scheme = QuantiseScheme::kMxfp4;
  else
    is_right = scheme == "fp8-block";
  if (comma != std::string::npos) {
    const auto block = parse_block_size(std::string_view(text).substr(comma + 1));
    is_right = is_right && block && wanted.scheme != QuantiseScheme::kMxfp4;
    if (block) std::tie(wanted.block_rows, wanted.block_columns) = *block;
  }
  if (is_right) return wanted;
  return fail(ErrorKind::kUsage, "\"" + text + "\" is not a way to quantise", {},
              "Write fp8-block, fp8-block-ue8m0 or mxfp4; fp8-block,64x64 has other blocks than "
              "128x128.");
}

Result<std::shared_ptr<const Checkpoint>> quantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                    const QuantiseOptions& wanted,
                                                    const Names& aside, Progress* progress) {
  SHW_CHECK(refuse_quantised_already(*checkpoint));
  ComputedPart part;
  const bool is_mxfp4 = wanted.scheme == QuantiseScheme::kMxfp4;
  SHW_TRY(Json config, is_mxfp4 ? quantise_to_mxfp4(checkpoint, aside, part)
                                : quantise_to_fp8(checkpoint, wanted, aside, part));
  if (part.tensors.empty())
    return quantise_error(
        is_mxfp4 ? "holds no stacked experts of bfloat16 ([experts, inputs, outputs], inputs a "
                   "multiple of 32)"
                 : "holds no weight of a linear module that the blocks divide",
        is_mxfp4 ? "MXFP4 is for gpt-oss; other models take fp8-block."
                 : "fp8-block,64x64 has smaller blocks; loaders have to know them.");
  if (checkpoint->directory() != nullptr) {
    if (auto file =
            config_file_with_value(*checkpoint->directory(), "quantization_config", config.dump()))
      part.files.push_back(std::move(file));
  }
  part.made_of = {checkpoint};
  return add_computed_tensors(std::move(checkpoint), std::move(part), progress);
}

}  // namespace shw
