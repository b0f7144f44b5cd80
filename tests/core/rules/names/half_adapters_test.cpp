// Pairs of an adapter's matrices whose ranks differ, and the small letters of mlx and GGUF.
#include <doctest/doctest.h>

#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

NamedTensors adapter_of(const std::string& first, const std::string& second, Extents a, Extents b) {
  NamedTensors tensors;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string module = fmt::format("layers.{}.q_proj", layer);
    tensors[module + first] = {"F32", a};
    tensors[module + second] = {"F32", b};
  }
  return tensors;
}

}  // namespace

TEST_CASE("half adapters: matrices of different ranks are an error") {
  NamedTensors tensors = adapter_of(".lora_A.weight", ".lora_B.weight", {4, 8}, {6, 4});
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  tensors["layers.1.q_proj.lora_A.weight"].shape = {2, 8};
  const std::string said = all_causes(checked_tensors(tensors), "half-pair");
  CHECK(said.find("layers.1.q_proj.lora_A.weight is [2, 8]") != std::string::npos);
  // A form in which no pair agrees is not known.
  CHECK(all_causes(checked_tensors(adapter_of(".lora_A.weight", ".lora_B.weight", {4, 8}, {6, 3})),
                   "half-pair")
            .empty());
}

TEST_CASE("half adapters: mlx's matrices are transposed and have small letters") {
  NamedTensors tensors = adapter_of(".lora_a", ".lora_b", {8, 4}, {4, 6});
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  tensors.erase("layers.1.q_proj.lora_b");
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("layers.1.q_proj.lora_b") !=
        std::string::npos);
}

TEST_CASE("half adapters: in square modules the smaller sizes are the ranks") {
  NamedTensors tensors = adapter_of(".lora_A.weight", ".lora_B.weight", {4, 8}, {8, 4});
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  tensors["layers.1.q_proj.lora_B.weight"].shape = {8, 2};
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("layers.1.q_proj.lora_A") !=
        std::string::npos);
}

TEST_CASE("half adapters: ranks above the sizes of small modules are none") {
  NamedTensors tensors = adapter_of(".lora_A.weight", ".lora_B.weight", {16, 8}, {8, 16});
  tensors["layers.0.k_proj.lora_A.weight"] = {"F32", {16, 8}};
  tensors["layers.0.k_proj.lora_B.weight"] = {"F32", {4, 16}};
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
}

TEST_CASE("half adapters: XLabs' names have halves too, and other words up and down have none") {
  NamedTensors tensors = adapter_of(".processor.qkv_lora1.down.weight",
                                    ".processor.qkv_lora1.up.weight", {4, 8}, {24, 4});
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  tensors.erase("layers.1.q_proj.processor.qkv_lora1.up.weight");
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("qkv_lora1.up") !=
        std::string::npos);
  NamedTensors blocks = adapter_of(".down.weight", ".up.weight", {4, 8}, {8, 4});
  blocks.erase("layers.1.q_proj.up.weight");
  CHECK(all_causes(checked_tensors(blocks), "half-pair").empty());
}

TEST_CASE("half adapters: one module without alpha is reported, none or half of them are not") {
  NamedTensors tensors;
  for (int module = 0; module < 5; ++module) {
    const std::string name = fmt::format("lora_unet_{}.", module);
    tensors[name + "lora_down.weight"] = {"F32", {4, 8}};
    tensors[name + "lora_up.weight"] = {"F32", {8, 4}};
  }
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  for (int module = 0; module < 4; ++module)
    tensors[fmt::format("lora_unet_{}.alpha", module)] = {"F32", {}};
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("lora_unet_4.alpha") !=
        std::string::npos);
  tensors.erase("lora_unet_3.alpha");
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
}

TEST_CASE(
    "half adapters: a factor that LoKr lost is reported without a config, in all modules too") {
  NamedTensors tensors;
  for (int module = 0; module < 3; ++module) {
    const std::string name = fmt::format("lora_unet_{}.", module);
    tensors[name + "lokr_w1"] = {"F32", {4, 4}};
    tensors[name + "lokr_w2_a"] = {"F32", {8, 2}};
    tensors[name + "lokr_w2_b"] = {"F32", {2, 8}};
  }
  CHECK(all_causes(checked_tensors(tensors), "half-pair").empty());
  tensors.erase("lora_unet_1.lokr_w1");
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("lora_unet_1.lokr_w1") !=
        std::string::npos);
  std::erase_if(tensors, [](const auto& one) { return one.first.ends_with("lokr_w1"); });
  CHECK(all_causes(checked_tensors(tensors), "half-pair").find("lora_unet_0.lokr_w1") !=
        std::string::npos);
}

TEST_CASE("half pair: an autoencoder with the middle block of one half alone is reported") {
  NamedTensors vae;
  for (const char* part : {"encoder.down_blocks.0.", "encoder.mid_block.", "decoder.mid_block.",
                           "decoder.up_blocks.0."})
    vae[std::string(part) + "resnets.0.conv1.weight"] = {"F32", {4, 4}};
  CHECK(find(checked_tensors(vae), "half-pair") == nullptr);
  for (const std::string half : {"encoder", "decoder"}) {
    NamedTensors lacking = vae;
    lacking.erase(half + ".mid_block.resnets.0.conv1.weight");
    const CheckReport report = checked_tensors(lacking);
    const Finding* finding = find(report, "half-pair");
    REQUIRE(finding != nullptr);
    CHECK(finding->cause.find(half + ".mid_block is missing") != std::string::npos);
  }
  // Autoencoders without such a block.
  std::erase_if(vae, [](const auto& one) { return one.first.find("mid") != std::string::npos; });
  CHECK(find(checked_tensors(vae), "half-pair") == nullptr);
}
