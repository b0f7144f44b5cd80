// Quantises and decodes again: each number becomes the nearest that its form can represent.
#include "core/combine/quantised.h"

#include <cmath>

#include "core/combine/combined_models.h"
#include "core/combine/quantise_rows.h"
#include "core/facts/values/dequantised.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::array<float, 8> kFp4{0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

std::shared_ptr<const Checkpoint> model(std::mt19937& random, Dtype dtype) {
  std::vector<TiledTensor> tensors;
  auto add = [&](const std::string& fqn, const Extents& shape) {
    tensors.push_back(numbers_tensor(
        fqn, shape, random_numbers(static_cast<std::size_t>(volume(shape).value()), random),
        dtype));
    tensors.back().tiles = random_tiles(shape, random);
  };
  add("model.layers.0.q_proj.weight", {8, 12});
  add("model.layers.0.odd.weight", {7, 12});
  add("model.layers.0.mlp.gate.weight", {8, 12});
  add("model.embed_tokens.weight", {8, 12});
  add("lm_head.weight", {8, 12});
  add("model.norm.weight", {12});
  add("model.layers.0.mlp.experts.gate_up_proj", {2, 32, 6});
  return laid(tensors, "base", 0, {}, {{"config.json", R"({"model_type": "of_nobody"})"}});
}

std::string config_of(const Checkpoint& checkpoint) {
  auto source = checkpoint.directory()->open("config.json");
  REQUIRE(source.has_value());
  const Bytes bytes = read_bytes(**source, 0, (*source)->size()).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("quantised: FP8 by blocks, decoded again, is near and keeps what loaders keep") {
  std::mt19937 random(3);
  for (const char* scheme : {"fp8-block,4x6", "fp8-block-ue8m0,4x6"}) {
    CAPTURE(scheme);
    const auto before = model(random, Dtype::kBfloat16);
    auto made = quantised(before, parse_quantise_options(scheme).value(), {}, nullptr);
    INFO((made ? std::string() : made.error().message));
    REQUIRE(made.has_value());
    const Checkpoint& c = **made;
    const std::string fqn = "model.layers.0.q_proj.weight";
    CHECK(c.tensor_count() == before->tensor_count() + 1);
    CHECK(c.dtype(*c.find(fqn)) == Dtype::kFloat8E4m3fn);
    CHECK(same(c.shape(*c.find(fqn + "_scale_inv")), Extents{2, 2}));
    const Numbers elements = numbers_of(c, fqn);
    Numbers scales;
    const bool are_powers = c.dtype(*c.find(fqn + "_scale_inv")) == Dtype::kFloat8E8m0fnu;
    if (!are_powers) scales = numbers_of(c, fqn + "_scale_inv");
    for (std::byte one : are_powers ? bytes_of(c, fqn + "_scale_inv") : Bytes{})
      scales.push_back(std::ldexp(1.0f, std::to_integer<int>(one) - 127));
    const Numbers expected = numbers_of(*before, fqn);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float decoded = elements[i] * scales[i / 12 / 4 * 2 + i % 12 / 6];
      // Tolerance: half a step of three bits, relative to the number or to the smallest normal
      // number.
      const float most = std::max(std::abs(expected[i]) / 16, scales[0] * 0.002f);
      CHECK(std::abs(decoded - expected[i]) <= most * 1.001f);
    }
    const std::string config = config_of(c);
    for (const char* kept :
         {"layers.0.odd", "mlp.gate", "embed_tokens", "lm_head", "mlp.experts", "weight_block"})
      CHECK(config.find(kept) != std::string::npos);
    CHECK(config.find("q_proj") == std::string::npos);
    CHECK((config.find("ue8m0") != std::string::npos) ==
          (std::string(scheme).find("ue8m0") != std::string::npos));
    // After reopening, the config tells the block sizes.
    auto again = quantised(*made, QuantiseOptions{}, {}, nullptr);
    CHECK_FALSE(again.has_value());
  }
}

TEST_CASE("quantised: MXFP4 holds what FP4 holds to the bit, and else the nearest") {
  std::mt19937 random(4);
  const std::string fqn = "model.layers.0.mlp.experts.gate_up_proj";
  const auto before = model(random, Dtype::kBfloat16);
  auto made = quantised(before, parse_quantise_options("mxfp4").value(), {}, nullptr);
  REQUIRE(made.has_value());
  CHECK(same((*made)->shape(*(*made)->find(fqn + "_blocks")), Extents{2, 6, 1, 16}));
  CHECK(same((*made)->shape(*(*made)->find(fqn + "_scales")), Extents{2, 6, 1}));
  auto decoded = dequantised(*made, nullptr);
  INFO((decoded ? std::string() : decoded.error().message));
  REQUIRE(decoded.has_value());
  const Numbers is = numbers_of(**decoded, fqn), expected = numbers_of(*before, fqn);
  for (std::size_t column = 0; column < 12; ++column) {
    const std::size_t expert = column / 6, output = column % 6;
    float largest = 0;
    auto at = [&](std::size_t input) { return (expert * 32 + input) * 6 + output; };
    for (std::size_t input = 0; input < 32; ++input)
      largest = std::max(largest, std::abs(expected[at(input)]));
    const float scale = std::exp2(std::ceil(std::log2(largest / 6)));
    for (std::size_t input = 0; input < 32; ++input) {
      float nearest = std::abs(std::abs(expected[at(input)]) - 0);
      for (float one : kFp4)
        nearest = std::min(nearest, std::abs(std::abs(expected[at(input)]) - one * scale));
      CHECK(std::abs(is[at(input)] - expected[at(input)]) == doctest::Approx(nearest));
    }
  }
  // Quantising and decoding a decoded tensor again changes nothing.
  auto config_free = laid({numbers_tensor(fqn, {2, 32, 6}, is, Dtype::kBfloat16)});
  auto twice = quantised(config_free, parse_quantise_options("mxfp4").value(), {}, nullptr);
  REQUIRE(twice.has_value());
  CHECK(numbers_of(**dequantised(*twice, nullptr), fqn) == is);
}

TEST_CASE("quantised: of two FP4 numbers that are as near the larger is taken, with its sign") {
  Numbers numbers(32, 0);
  const Numbers halfway{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, 6, -0.25f, -0.0f, 0.2499f};
  std::copy(halfway.begin(), halfway.end(), numbers.begin());
  const Fp4Rows rows = quantise_fp4(numbers, 32, 1);
  CHECK(rows.scales[0] == std::byte{127});
  const std::vector<unsigned> codes{1, 2, 3, 4, 5, 6, 7, 7, 9, 8, 0};
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const unsigned both = std::to_integer<unsigned>(rows.blocks[i / 2]);
    CHECK((i % 2 == 0 ? both & 0xF : both >> 4) == codes[i]);
  }
  const Fp4Rows zeros = quantise_fp4(Numbers(32, 0), 32, 1);
  CHECK(zeros.scales[0] == std::byte{0});
}

TEST_CASE("quantised: ways that are none, and models without such weights, are refused") {
  for (const char* text : {"", "fp8", "int4", "fp8-block,", "fp8-block,0x4", "fp8-block,4",
                           "fp8-block,4x", "fp8-block,4x4x4", "mxfp4,4x4", "fp8-block,99999999x1"})
    CHECK_FALSE(parse_quantise_options(text).has_value());
  const auto norms = laid({numbers_tensor("norm.weight", {4}, {1, 2, 3, 4})});
  CHECK_FALSE(quantised(norms, QuantiseOptions{}, {}, nullptr).has_value());
  // Names of optimizer states contain names of weights.
  const std::string state = "optimizer.exp_avg.q_proj.weight";
  const auto states = laid({numbers_tensor(state, {128, 128}, Numbers(128 * 128, 1))});
  CHECK(quantised(states, QuantiseOptions{}, {}, nullptr).has_value());
  CHECK_FALSE(quantised(states, QuantiseOptions{}, {state}, nullptr).has_value());
  CHECK_FALSE(quantised(norms, parse_quantise_options("mxfp4").value(), {}, nullptr).has_value());
}
