// Folders whose weights are of another size or number than the config of their library says.
#include "core/formats/component_config.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/formats/component_constraints.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

using Shapes = std::vector<std::pair<std::string, Extents>>;
using Files = std::vector<std::pair<std::string, Bytes>>;

Bytes file_of_shapes(const Shapes& shapes) {
  nlohmann::json header;
  std::uint64_t end = 0;
  for (const auto& [name, shape] : shapes) {
    const auto bytes = static_cast<std::uint64_t>(4 * volume(shape).value_or(0));
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const std::string text = header.dump();
  return to_bytes(little(text.size(), 8) + text + std::string(end, '\1'));
}

// "config-shape conv_in.weight" of all findings above info, sorted.
std::vector<std::string> said_of_config(Files files) {
  auto opened = open_checkpoint(memory_directory("memory", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  std::vector<std::string> said;
  for (const Finding& finding : (*opened)->opening_findings()) {
    if (finding.severity != Severity::kInfo)
      said.push_back(finding.rule + " " + finding.subjects.front());
  }
  std::sort(said.begin(), said.end());
  return said;
}

const Shapes kUnet = {
    {"conv_in.weight", {8, 4, 3, 3}},
    {"conv_out.weight", {4, 8, 3, 3}},
    {"down_blocks.0.resnets.0.conv1.weight", {8, 8, 3, 3}},
    {"down_blocks.1.resnets.0.conv1.weight", {16, 8, 3, 3}},
    {"down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.weight", {16, 6}},
    {"up_blocks.0.resnets.0.conv1.weight", {16, 8, 3, 3}},
    {"up_blocks.1.resnets.0.conv1.weight", {8, 8, 3, 3}}};

nlohmann::json unet_config() {
  return {{"_class_name", "UNet2DConditionModel"},
          {"_diffusers_version", "0.42.1"},
          {"in_channels", 4},
          {"out_channels", 4},
          {"block_out_channels", {8, 16}},
          {"down_block_types", {"DownBlock2D", "CrossAttnDownBlock2D"}},
          {"up_block_types", {"CrossAttnUpBlock2D", "UpBlock2D"}},
          {"layers_per_block", 1},
          {"cross_attention_dim", 6}};
}

std::vector<std::string> said_of_unet(const nlohmann::json& config) {
  return said_of_config({{"config.json", to_bytes(config.dump())},
                         {"diffusion_pytorch_model.safetensors", file_of_shapes(kUnet)}});
}

using PieceNotice = std::vector<std::string>;

}  // namespace

TEST_CASE("component config: a size that diffusers' config contradicts is an error") {
  CHECK(said_of_unet(unet_config()).empty());
  const auto with = [](const char* key, const nlohmann::json& value) {
    nlohmann::json config = unet_config();
    config[key] = value;
    return said_of_unet(config);
  };
  CHECK(with("in_channels", 9) == PieceNotice{"config-shape conv_in.weight"});
  CHECK(with("cross_attention_dim", 12) ==
        PieceNotice{
            "config-shape down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.weight"});
  CHECK(with("block_out_channels", {8, 32}) ==
        PieceNotice{"config-shape down_blocks.1.resnets.0.conv1.weight"});
  CHECK(with("layers_per_block", 2) == PieceNotice{"config-count down_blocks.0.resnets.1",
                                                   "config-count down_blocks.1.resnets.1"});
  CHECK(with("down_block_types", {"DownBlock2D"}) == PieceNotice{"config-count down_blocks.1"});
  // Values of other types, and classes that are not known, say nothing.
  for (const nlohmann::json& value :
       {nlohmann::json("4"), nlohmann::json(-4), nlohmann::json(nullptr),
        nlohmann::json::array({1, 2}), nlohmann::json(~std::uint64_t{0})})
    CHECK(with("in_channels", value).empty());
  CHECK(with("block_out_channels", nlohmann::json::array()).empty());
  CHECK(with("_class_name", "OtherModel").empty());
  CHECK(with("quantization_config", {{"quant_method", "bitsandbytes"}}).empty());
}

TEST_CASE("component config: a component of a pipeline is named with its folder") {
  nlohmann::json unet = unet_config();
  unet["in_channels"] = 9;
  const nlohmann::json text = {{"architectures", {"CLIPTextModel"}},
                               {"model_type", "clip_text_model"},
                               {"hidden_size", 64},
                               {"vocab_size", 10}};
  const Shapes encoder = {{"text_model.embeddings.token_embedding.weight", {10, 32}}};
  const Files files = {{"model_index.json", to_bytes(R"({"_class_name":"P"})")},
                       {"unet/config.json", to_bytes(unet.dump())},
                       {"unet/diffusion_pytorch_model.safetensors", file_of_shapes(kUnet)},
                       {"text_encoder/config.json", to_bytes(text.dump())},
                       {"text_encoder/model.safetensors", file_of_shapes(encoder)}};
  CHECK(said_of_config(files) ==
        PieceNotice{"config-shape text_encoder.text_model.embeddings.token_embedding.weight",
                    "config-shape unet.conv_in.weight"});
  auto opened = open_checkpoint(memory_directory("memory", files));
  REQUIRE(opened.has_value());
  const auto findings = (*opened)->opening_findings();
  CHECK(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.cause.starts_with("In unet: config.json says in_channels 9");
  }));
}

TEST_CASE("component config: timm, OpenCLIP and Meta's params.json are compared") {
  const auto with = [](const char* file, const nlohmann::json& config, const Shapes& shapes) {
    return said_of_config(
        {{file, to_bytes(config.dump())}, {"model.safetensors", file_of_shapes(shapes)}});
  };
  nlohmann::json timm = {
      {"architecture", "vit"}, {"num_classes", 10}, {"pretrained_cfg", {{"classifier", "head"}}}};
  const Shapes vit = {{"head.weight", {10, 4}}, {"norm.weight", {4}}};
  CHECK(with("config.json", timm, vit).empty());
  timm["num_classes"] = 1000;
  CHECK(with("config.json", timm, vit) == PieceNotice{"config-shape head.weight"});

  const Shapes clip = {{"visual.proj", {8, 6}},
                       {"transformer.resblocks.0.ln_1.weight", {4}},
                       {"transformer.resblocks.1.ln_1.weight", {4}},
                       {"token_embedding.weight", {9, 4}}};
  nlohmann::json open_clip = {
      {"model_cfg",
       {{"embed_dim", 6}, {"text_cfg", {{"layers", 2}, {"width", 4}, {"vocab_size", 9}}}}}};
  CHECK(with("open_clip_config.json", open_clip, clip).empty());
  open_clip["model_cfg"]["text_cfg"]["layers"] = 3;
  open_clip["model_cfg"]["embed_dim"] = 7;
  CHECK(with("open_clip_config.json", open_clip, clip) ==
        PieceNotice{"config-count transformer.resblocks.2", "config-shape visual.proj"});

  const Shapes llama = {{"tok_embeddings.weight", {9, 8}},
                        {"layers.0.attention.wq.weight", {8, 8}},
                        {"layers.0.attention.wk.weight", {4, 8}},
                        {"layers.1.attention.wk.weight", {4, 8}}};
  nlohmann::json params = {
      {"dim", 8}, {"n_layers", 2}, {"n_heads", 4}, {"n_kv_heads", 2}, {"vocab_size", -1}};
  CHECK(with("params.json", params, llama).empty());
  params["n_kv_heads"] = 4;
  params["n_layers"] = 3;
  CHECK(with("params.json", params, llama) ==
        PieceNotice{"config-count layers.2", "config-shape layers.0.attention.wk.weight"});
}

TEST_CASE("component config: every constraint has the form that its reader knows") {
  const std::regex tensor(R"(\*?[a-z0-9_.]*#?[a-z0-9_.]*)");
  const std::regex value(
      R"(([0-9]+|len\([a-z_.]+\)|[a-z_.]+(\[(#|-?[0-9]+)\])?)(\*([0-9]+|[a-z_.]+))*)");
  for (const auto constraints : {constraints_of_diffusers(), constraints_of_open_clip(),
                                 constraints_of_meta(), constraints_of_text_encoders()}) {
    CHECK_FALSE(constraints.empty());
    for (const ConfigConstraint& constraint : constraints) {
      CAPTURE(constraint.tensor);
      CHECK(std::regex_match(std::string(constraint.tensor), tensor));
      CHECK(std::regex_match(std::string(constraint.value), value));
      CHECK(constraint.axis >= kCountsList);
    }
  }
}
