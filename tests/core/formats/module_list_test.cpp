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
using Said = std::vector<std::string>;

Bytes module_weight(const std::string& name) {
  const std::string header =
      "{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return to_bytes(little(header.size(), 8) + header + std::string(4, '\1'));
}

Said said_of_modules(Files files) {
  auto opened = open_checkpoint(memory_directory("memory", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  Said said;
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

}  // namespace

TEST_CASE("module list: modules of another width than the transformer are reported") {
  const std::string mean = R"({"embedding_dimension":32,"pooling_mode":"mean"})";
  CHECK(said_of_modules(sentence_model(mean, 32)).empty());
  CHECK(said_of_modules(sentence_model(mean, 48)) == Said{"config-shape 2_Dense"});
  CHECK(said_of_modules(sentence_model(
            R"({"word_embedding_dimension":48,"pooling_mode_mean_tokens":true})", 32)) ==
        Said{"config-shape 1_Pooling"});
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
  const auto pipeline = [](const Said& paths) {
    Files files = {
        {"model_index.json", to_bytes(R"({"unet":["diffusers","U"],"vae":["diffusers","V"]})")}};
    for (const std::string& path : paths)
      files.emplace_back(path + ".safetensors", module_weight("w"));
    return said_of_modules(files);
  };
  CHECK(pipeline({"unet/model", "unet/model.fp16", "vae/model", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model", "vae/model.fp16"}).empty());
  CHECK(pipeline({"unet/model.fp16", "vae/model"}) == Said{"config-announces unet"});
}
