// Checkpoints without anything that a model could load, and weights that were never written.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("empty tensors: a file without a tensor is reported") {
  CHECK(rules_above_info(checked_tensors({})) == std::vector<std::string>{"empty-tensors"});
}

TEST_CASE("empty tensors: some weights without an element are reported") {
  NamedTensors tensors = llama_tensors(same_name);
  tensors["model.norm.weight"].shape = {0};
  const CheckReport report = checked_tensors(tensors);
  const Finding* finding = find(report, "empty-tensors");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects == std::vector<std::string>{"model.norm.weight"});
}

TEST_CASE("empty tensors: tensors of any name are reported if none has an element") {
  NamedTensors tensors;
  for (const char* name : {"lokr_w1", "lokr_w2", "scale"})
    tensors[std::string("base_model.model.fc.") + name].shape = {0};
  const CheckReport report = checked_tensors(tensors);
  const Finding* finding = find(report, "empty-tensors");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kError);
  CHECK(finding->subjects.size() == 3);
  tensors["base_model.model.fc.scale"].shape = {1};
  tensors.erase("base_model.model.fc.lokr_w1");
  tensors.erase("base_model.model.fc.lokr_w2");
  tensors["base_model.model.fc.list"].shape = {0};
  CHECK(find(checked_tensors(tensors), "empty-tensors") == nullptr);
}

TEST_CASE("empty tensors: one empty tensor of any name alone raises nothing") {
  CHECK(find(checked_tensors({{"k0", {"F32", {0}}}}), "empty-tensors") == nullptr);
  CHECK(find(checked_tensors({{"a", {"F32", {0, 3}}}, {"b", {"F32", {0, 3}}}}), "empty-tensors") ==
        nullptr);
}

TEST_CASE("empty tensors: the states of an optimizer alone are reported") {
  CHECK(rules_above_info(
            checked_tensors({{"optimizer.state.layers.0.weight.exp_avg", {"F32", {4, 4}}},
                             {"optimizer.state.layers.0.weight.exp_avg_sq", {"F32", {4, 4}}}})) ==
        std::vector<std::string>{"empty-tensors"});
}

TEST_CASE("empty tensors: a model below the key state is not an optimizer") {
  CHECK(rules_above_info(checked_tensors({{"state.conv.weight", {"F32", {4, 4}}},
                                          {"state.conv.bias", {"F32", {4}}},
                                          {"state.norm.running_mean", {"F32", {4}}}}))
            .empty());
}

TEST_CASE("empty tensors: counters and generators alone are reported") {
  CHECK(rules_above_info(checked_tensors({{"cpu", {"U8", {5056}}}, {"cuda", {"U8", {16}}}})) ==
        std::vector<std::string>{"empty-tensors"});
}

TEST_CASE("zero weights: an expert of zeros among others is reported") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    tensors[fmt::format("layers.0.experts.{}.up_proj.weight", i)] = {
        "F32", {16, 8}, 0.5F + static_cast<float>(i)};
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["layers.0.experts.2.up_proj.weight"].value = 0;
  const CheckReport report = checked_tensors(tensors, {}, Depth::kData);
  const Finding* finding = find(report, "zero-weights");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects == std::vector<std::string>{"layers.0.experts.2.up_proj.weight"});
}

TEST_CASE("zero weights: matrices that begin at zero in all layers raise nothing") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    tensors[fmt::format("layers.{}.out_proj.weight", i)] = {"F32", {16, 8}, 0};
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
}

TEST_CASE("zero weights: experts of zeros in a stacked tensor are counted") {
  NamedTensors tensors;
  tensors["layers.0.mlp.experts.up_proj"] = {"F32", {4, 8, 8}};
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["layers.0.mlp.experts.up_proj"].rows_with_value = 1;
  CHECK(all_causes(checked_tensors(tensors, {}, Depth::kData), "zero-weights")
            .find("3 of 4 experts") != std::string::npos);
}

TEST_CASE("zero weights: matrices with one rank's rows or columns alone are reported") {
  for (const bool by_rows : {true, false}) {
    CAPTURE(by_rows);
    NamedTensors tensors;
    for (int i = 0; i < 3; ++i) {
      NamedTensor& weight = tensors[fmt::format("layers.{}.mlp.up_proj.weight", i)];
      weight = {"F32", {16, 32}};
      (by_rows ? weight.rows_with_value : weight.columns_with_value) = by_rows ? 4 : 8;
      tensors[fmt::format("layers.{}.norm.weight", i)] = {"F32", {32}};
    }
    const CheckReport report = checked_tensors(tensors, {}, Depth::kData);
    const Finding* finding = find(report, "zero-weights");
    REQUIRE(finding != nullptr);
    CHECK(finding->subjects.size() == 3);
    CHECK(finding->severity == Severity::kWarning);
    CHECK(finding->cause.find(by_rows ? "rows 0 to 3" : "columns 0 to 7") != std::string::npos);
  }
}

TEST_CASE("zero weights: pruned matrices and a single half-written one raise nothing") {
  NamedTensors tensors;
  for (int i = 0; i < 3; ++i) {
    NamedTensor& weight = tensors[fmt::format("layers.{}.mlp.up_proj.weight", i)];
    weight = {"F32", {16, 32}};
    weight.one_of = 2 + 2 * (i % 2);
  }
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["other.weight"] = {"F32", {16, 32}};
  tensors["other.weight"].rows_with_value = 8;
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
}

TEST_CASE("zero weights: one norm of zeros among others is reported") {
  NamedTensors tensors;
  for (int i = 0; i < 4; ++i)
    tensors[fmt::format("layers.{}.input_layernorm.weight", i)] = {"F32", {64}, 1};
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["layers.1.input_layernorm.weight"].value = 0;
  const CheckReport report = checked_tensors(tensors, {}, Depth::kData);
  const Finding* finding = find(report, "zero-weights");
  REQUIRE(finding != nullptr);
  CHECK(finding->subjects == std::vector<std::string>{"layers.1.input_layernorm.weight"});
}

TEST_CASE("zero weights: an output layer of zeros is reported") {
  NamedTensors tensors = {{"lm_head.weight", {"F32", {16, 8}, 0.5F}},
                          {"model.embed_tokens.weight", {"F32", {16, 8}, 0.25F}}};
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["lm_head.weight"].value = 0;
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") != nullptr);
}

TEST_CASE("zero weights: norms or queries of zeros in every layer are reported") {
  const std::string config = R"({"model_type": "llama"})";
  for (const char* zero : {"model.norm.weight", "self_attn.q_proj.weight"}) {
    CAPTURE(zero);
    NamedTensors tensors = {{"model.norm.weight", {"F32", {64}, 1}}};
    for (int i = 0; i < 3; ++i)
      tensors[fmt::format("model.layers.{}.self_attn.q_proj.weight", i)] = {"F32", {16, 8}, 0.5F};
    const auto checked = [&](const std::string& text) {
      return checked_tensors(tensors, {{"config.json", text}}, Depth::kData);
    };
    CHECK(find(checked(config), "zero-weights") == nullptr);
    for (auto& [name, tensor] : tensors) {
      if (name.ends_with(zero)) tensor.value = 0;
    }
    CHECK(find(checked(config), "zero-weights") != nullptr);
    // Norms of Gemma multiply by 1 + weight.
    CHECK(find(checked(R"({"model_type": "gemma2"})"), "zero-weights") == nullptr);
  }
}

TEST_CASE("zero weights: the last norm of each residual block may begin at zero") {
  NamedTensors tensors;
  for (const char* block : {"layer1.0", "layer1.1", "layer2.0", "layer2.1"}) {
    for (const char* norm : {"bn1", "bn2", "bn3"}) {
      const float value = norm == std::string_view("bn3") ? 0.0F : 1.0F;
      tensors[fmt::format("{}.{}.weight", block, norm)] = {"F32", {64}, value};
    }
  }
  CHECK(find(checked_tensors(tensors, {}, Depth::kData), "zero-weights") == nullptr);
  tensors["layer2.1.bn2.weight"].value = 0;
  const CheckReport report = checked_tensors(tensors, {}, Depth::kData);
  REQUIRE(find(report, "zero-weights") != nullptr);
  CHECK(find(report, "zero-weights")->subjects == std::vector<std::string>{"layer2.1.bn2.weight"});
}
