// Adds 1 to norm weights or subtracts it, and changes nothing else.
#include "core/combine/shifted_norms.h"

#include "core/combine/combined_models.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("norms are known by the names that programs give them") {
  for (const char* fqn :
       {"model.norm.weight", "model.layers.3.input_layernorm.weight",
        "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
        "decoder.final_layernorm.weight", "transformer.h.0.ln_1.weight",
        "model.layers.0.self_attn.q_norm.weight", "layers.0.attention_norm.weight"})
    CHECK_MESSAGE(is_norm_weight(fqn), fqn);
  for (const char* fqn : {"model.norm.bias", "model.layers.0.mlp.gate.weight",
                          "norm.layers.0.q_proj.weight", "model.normal.0.weight_scale"})
    CHECK_MESSAGE(!is_norm_weight(fqn), fqn);
}

TEST_CASE("norms: master weights are shifted with them, and moments are not") {
  for (const char* fqn :
       {"model.norm.weight", "optimizer.state.param.decoder.final_layernorm.weight",
        "optimizer.state.module.module.module.decoder.final_layernorm.weight.param"})
    CHECK_MESSAGE(is_norm_weight_or_master(fqn), fqn);
  for (const char* fqn : {"optimizer.state.exp_avg.decoder.final_layernorm.weight",
                          "optimizer.state.norm.weight.exp_avg_sq",
                          "optimizer.state.param.decoder.layers.mlp.linear_fc1.weight"})
    CHECK_MESSAGE(!is_norm_weight_or_master(fqn), fqn);
}

TEST_CASE("norms shifted by 1 are each element with 1 more, and the way back is exact near 1") {
  std::mt19937 random(4);
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16}) {
    std::vector<TiledTensor> tensors;
    tensors.push_back(numbers_tensor("model.norm.weight", {16}, random_numbers(16, random), dtype));
    tensors.push_back(
        numbers_tensor("layers.layernorm.weight", {2, 8}, random_numbers(16, random), dtype));
    tensors.push_back(numbers_tensor("q_proj.weight", {4, 4}, random_numbers(16, random), dtype));
    tensors[1].tiles = random_tiles({2, 8}, random);
    const auto before = laid(tensors, "gemma", 0, {}, {});
    auto made = shift_norm_weights(before, 1, nullptr);
    REQUIRE(made.has_value());
    for (const char* fqn : {"model.norm.weight", "layers.layernorm.weight"}) {
      const Numbers was = numbers_of(*before, fqn), is = numbers_of(**made, fqn);
      REQUIRE(was.size() == is.size());
      for (std::size_t i = 0; i < was.size(); ++i) {
        const float wanted = was[i] + 1;
        const float most = dtype == Dtype::kFloat32 ? 0 : std::abs(wanted) / 256;
        CHECK(std::abs(is[i] - wanted) <= most);
      }
    }
    CHECK(numbers_of(**made, "q_proj.weight") == numbers_of(*before, "q_proj.weight"));
    auto there = shift_norm_weights(*made, -1, nullptr);
    REQUIRE(there.has_value());
    auto again = shift_norm_weights(*there, 1, nullptr);
    REQUIRE(again.has_value());
    CHECK(numbers_of(**again, "model.norm.weight") == numbers_of(**made, "model.norm.weight"));
  }
}

TEST_CASE("a checkpoint without norms is not shifted") {
  std::mt19937 random(4);
  const auto model =
      laid({numbers_tensor("q_proj.weight", {4, 4}, random_numbers(16, random), Dtype::kFloat32)},
           "base", 0, {}, {});
  auto made = shift_norm_weights(model, 1, nullptr);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().kind == ErrorKind::kUnsupported);
}
