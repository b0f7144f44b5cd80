// The kernel and the positions of a vision tower against patch_size and image_size.
#include "core/rules/reference/config_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

ConfigWeights tower(const std::string& root, const std::string& kernel, Extents kernel_shape,
                    const std::string& positions, Extents positions_shape) {
  ConfigWeights weights;
  weights.shapes = {{root + kernel, std::move(kernel_shape)},
                    {root + positions, std::move(positions_shape)},
                    {root + "post_layernorm.weight", {8}}};
  return weights;
}

std::string causes(const ConfigWeights& weights, const std::string& config) {
  const CheckReport report = beside_config(weights, config);
  std::string all;
  for (const Finding* finding : finding_of_side_file(report, Severity::kWarning))
    all += finding->cause + "\n";
  return all;
}

std::string vision(const std::string& sizes) {
  return R"({"model_type": "clip_vision_model", "architectures": ["CLIPVisionModel"], )" + sizes +
         "}";
}

}  // namespace

TEST_CASE("patch sizes: the kernel that cuts an image is patch_size a side") {
  const auto weights = tower("vision_model.", "embeddings.patch_embedding.weight", {8, 3, 4, 4},
                             "embeddings.position_embedding.weight", {17, 8});
  CHECK(causes(weights, vision(R"("patch_size": 4, "image_size": 16)")).empty());
  CHECK(names_all(causes(weights, vision(R"("patch_size": 8, "image_size": 16)")),
                  {"patch_size 8", "[8, 3, 4, 4]", "4 elements a side"}));
  CHECK(causes(weights, vision(R"("image_size": 16)")).empty());
}

TEST_CASE("patch sizes: positions are those of the patches and up to two tokens more") {
  for (const std::int64_t tokens : {0, 1, 2, 3}) {
    const auto weights = tower("", "embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4},
                               "embeddings.position_embeddings", {1, 16 + tokens, 8});
    const std::string config =
        R"({"model_type": "vit", "architectures": ["ViTModel"], "patch_size": 4, "image_size": 16})";
    CHECK(causes(weights, config).empty() == (tokens <= 2));
  }
  const auto weights = tower("vision_tower.vision_model.", "embeddings.patch_embedding.weight",
                             {8, 3, 4, 4}, "embeddings.position_embedding.weight", {16, 8});
  const auto nested = [](int image) {
    return fmt::format(R"({{"model_type": "made_vl", "vision_config":
                           {{"patch_size": 4, "image_size": {}}}}})",
                       image);
  };
  CHECK(causes(weights, nested(16)).empty());
  CHECK(names_all(causes(weights, nested(32)), {"vision_config.image_size 32", "squared = 64"}));
}

TEST_CASE("patch sizes: backbones and two towers are left alone") {
  const auto behind = tower("", "embeddings.patch_embeddings.projection.weight", {8, 64, 1, 1},
                            "embeddings.position_embeddings", {1, 17, 8});
  CHECK(causes(behind, R"({"model_type": "dpt", "patch_size": 16, "image_size": 64})").empty());
  ConfigWeights two = tower("vision_model.", "embeddings.patch_embedding.weight", {8, 3, 4, 4},
                            "embeddings.position_embedding.weight", {16, 8});
  two.shapes["high_res_vision_model.patch_embed.projection.weight"] = {8, 3, 2, 2};
  CHECK(causes(two, vision(R"("patch_size": 4, "image_size": 16)")).empty());
}

TEST_CASE("patch sizes: as many tokens as the config says, and images of the pretraining") {
  const auto weights = tower("", "embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4},
                             "embeddings.position_embeddings", {1, 16 + 8, 8});
  const auto config = [](const std::string& more) {
    return R"({"model_type": "pixio", "architectures": ["PixioModel"], "patch_size": 4, )" + more +
           "}";
  };
  CHECK(causes(weights, config(R"("image_size": 16, "n_cls_tokens": 8)")).empty());
  CHECK_FALSE(causes(weights, config(R"("image_size": 16, "n_cls_tokens": 4)")).empty());
  CHECK(causes(weights, config(R"("image_size": 64, "pretrain_image_size": 16, "n_cls_tokens": 8)"))
            .empty());
}
