// Parts of a model that do not fit each other: widths of sentence-transformers' modules, variants
// of a pipeline's components.
#include "core/formats/module_list.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/memory_sink.h"

using namespace shw;
using namespace shw::test;

namespace {

using Files = std::vector<std::pair<std::string, Bytes>>;
using PieceNotice = std::vector<std::string>;

Bytes module_weight(const std::string& name) {
  const std::string header =
      "{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return to_bytes(little(header.size(), 8) + header + std::string(4, '\1'));
}

PieceNotice said_of_modules(Files files) {
  auto opened = open_checkpoint(memory_directory("memory", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  PieceNotice said;
  for (const Finding& finding : (*opened)->opening_findings()) {
    if (finding.severity != Severity::kInfo)
      said.push_back(finding.rule + " " + finding.subjects.front());
  }
  return said;
}

Files sentence_model(const std::string& pooling, int inputs) {
  return {{"modules.json", to_bytes(R"([{"path":"","type":"a.Transformer"},
                                        {"path":"1_Pooling","type":"a.Pooling"},
                                        {"path":"2_Dense","type":"a.Dense"}])")},
          {"config.json", to_bytes(R"({"hidden_size":32})")},
          {"model.safetensors", module_weight("w")},
          {"1_Pooling/config.json", to_bytes(pooling)},
          {"2_Dense/config.json", to_bytes("{\"in_features\":" + std::to_string(inputs) + "}")},
          {"2_Dense/model.safetensors", module_weight("linear.weight")}};
}

// A sentence-transformers list of folders, each with the class of its module.
Bytes module_list(const std::vector<std::pair<std::string, std::string>>& modules) {
  std::string text;
  for (const auto& [path, type] : modules)
    text += std::string(text.empty() ? "[" : ",") + R"({"path":")" + path +
            R"(","type":"sentence_transformers.models.)" + type + R"("})";
  return to_bytes(text + "]");
}

}  // namespace

TEST_CASE("module list: modules of another width than the transformer are reported") {
  const std::string mean = R"({"embedding_dimension":32,"pooling_mode":"mean"})";
  CHECK(said_of_modules(sentence_model(mean, 32)).empty());
  CHECK(said_of_modules(sentence_model(mean, 48)) == PieceNotice{"config-shape 2_Dense"});
  CHECK(said_of_modules(sentence_model(
            R"({"word_embedding_dimension":48,"pooling_mode_mean_tokens":true})", 32)) ==
        PieceNotice{"config-shape 1_Pooling"});
  // Two modes of pooling make vectors twice as long.
  CHECK(said_of_modules(
            sentence_model(R"({"word_embedding_dimension":32,"pooling_mode_mean_tokens":true,
                                   "pooling_mode_max_tokens":true})",
                           64))
            .empty());
  CHECK(
      said_of_modules(sentence_model(R"({"embedding_dimension":32,"pooling_mode":"mean+max"})", 64))
          .empty());
}

TEST_CASE("module list: tensors of all modules in one checkpoint are not missing files") {
  Files files = sentence_model("{}", 32);
  files.pop_back();
  files[2].second = module_weight("2_Dense.linear.weight");
  CHECK(said_of_modules(files).empty());
}

TEST_CASE("module list: a variant of half the components is warned of") {
  const auto pipeline = [](const PieceNotice& paths) {
    Files files = {
        {"model_index.json", to_bytes(R"({"unet":["diffusers","U"],"vae":["diffusers","V"]})")}};
    for (const std::string& path : paths)
      files.emplace_back(path + ".safetensors", module_weight("w"));
    return said_of_modules(files);
  };
  CHECK(pipeline({"unet/model", "unet/model.fp16", "vae/model", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model"}) == PieceNotice{"config-announces unet"});
}

TEST_CASE("module list: the branches of a Router are parts of one checkpoint") {
  const Bytes branches = to_bytes(
      R"({"types":{"query_0_StaticEmbedding":"a.StaticEmbedding","document_0_Transformer":)"
      R"("a.Transformer","document_1_Pooling":"a.Pooling"}})");
  for (const std::string folder : {"", "0_Router"}) {
    CAPTURE(folder);
    const std::string below = folder.empty() ? "" : folder + "/";
    Files files{{"modules.json", module_list({{folder, "Router"}, {"1_Normalize", "Normalize"}})},
                {below + "router_config.json", branches},
                {below + "query_0_StaticEmbedding/model.safetensors", module_weight("w")},
                {below + "document_0_Transformer/model.safetensors", module_weight("w")},
                {below + "document_1_Pooling/config.json", to_bytes("{}")}};
    auto opened = open_checkpoint(memory_directory("memory", files));
    REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
    const std::string before = folder.empty() ? "" : folder + ".";
    CHECK((*opened)->tensor_count() == 2);
    CHECK((*opened)->find(before + "document_0_Transformer.w"));
    CHECK((*opened)->find(before + "query_0_StaticEmbedding.w"));
    CHECK(said_of_modules(files).empty());
    files.erase(files.begin() + 2);
    CHECK(said_of_modules(files) ==
          PieceNotice{"config-announces " + below + "query_0_StaticEmbedding"});
  }
}

TEST_CASE("module list: a module whose files are not there or have another size is an error") {
  const Files whole{{"modules.json", module_list({{"", "Transformer"},
                                                  {"1_Pooling", "Pooling"},
                                                  {"2_Dense", "Dense"},
                                                  {"3_Normalize", "Normalize"},
                                                  {"4_Own", "OwnClass"}})},
                    {"model.safetensors", module_weight("w")},
                    {"1_Pooling/config.json", to_bytes("{}")},
                    {"2_Dense/config.json", to_bytes(R"({"in_features":3,"out_features":1})")},
                    {"2_Dense/model.safetensors", module_weight("linear.bias")}};
  CHECK(said_of_modules(whole).empty());
  auto without = [&](const std::string& begin) {
    Files files = whole;
    std::erase_if(files, [&](const auto& file) { return file.first.starts_with(begin); });
    return said_of_modules(files);
  };
  CHECK(without("1_Pooling") == PieceNotice{"config-announces 1_Pooling"});
  CHECK(without("2_Dense/") == PieceNotice{"config-announces 2_Dense"});
  CHECK(without("2_Dense/model") == PieceNotice{"config-announces 2_Dense"});
  Files other = whole;
  other[3].second = to_bytes(R"({"in_features":3,"out_features":2})");
  CHECK(said_of_modules(other) == PieceNotice{"config-shape 2_Dense.linear.bias"});
  // Values in config.json that are not numbers are not compared.
  for (const std::string config :
       {R"({"out_features":-1})", R"({"out_features":"1"})", "[]", "{"}) {
    other[3].second = to_bytes(config);
    CHECK(said_of_modules(other).empty());
  }
}

TEST_CASE("module list: a list of modules that is made up is passed over") {
  for (const std::string list :
       {R"([{"path":"../2_Dense","type":"Dense"}])", R"([{"path":7,"type":[]}])", R"({"a":1})",
        R"([{"path":"2_Dense/","type":"a.b.Router"},7,null])", "", "[[[["}) {
    CAPTURE(list);
    CHECK(
        said_of_modules({{"modules.json", to_bytes(list)},
                         {"model.safetensors", module_weight("w")},
                         {"2_Dense/router_config.json", to_bytes(R"({"types":{"../x":"Dense"}})")}})
            .empty());
  }
}

TEST_CASE("module list: a component of a pipeline that is not there is an error") {
  const char* kIndex = R"({"_class_name": "StableDiffusionPipeline",
                           "unet": ["diffusers", "UNet2DConditionModel"],
                           "vae": ["diffusers", "AutoencoderKL"],
                           "scheduler": ["diffusers", "DDIMScheduler"],
                           "safety_checker": [null, null]})";
  Files files = {{"model_index.json", to_bytes(kIndex)},
                 {"unet/diffusion_pytorch_model.safetensors", module_weight("a")},
                 {"vae/config.json", to_bytes("{}")},
                 {"vae/diffusion_pytorch_model.safetensors", module_weight("a")},
                 {"scheduler/scheduler_config.json", to_bytes("{}")}};
  CHECK(said_of_modules(files).empty());
  files.erase(files.begin() + 3);
  CHECK(said_of_modules(files) == PieceNotice{"config-announces vae"});
  files.erase(files.begin() + 2);
  CHECK(said_of_modules(files) == PieceNotice{"config-announces vae"});
  files[1].first = "vae/diffusion_pytorch_model.safetensors";
  files.pop_back();
  CHECK(said_of_modules(files) ==
        PieceNotice{"config-announces scheduler", "config-announces unet"});
}
