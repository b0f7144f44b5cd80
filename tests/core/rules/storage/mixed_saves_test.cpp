// Parts of one model that come from several saves.
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

// Layer `n` of a small model in its own file.
NamedTensors layer_tensors(int n, const std::string& dtype) {
  NamedTensors tensors;
  for (const char* name : {"q_proj", "k_proj", "up_proj", "down_proj"})
    tensors[fmt::format("model.layers.{}.{}.weight", n, name)] = {dtype, {8, 8}};
  return tensors;
}

CheckReport checked_parts(const std::vector<NamedTensors>& parts) {
  std::vector<std::pair<std::string, Bytes>> files;
  for (std::size_t i = 0; i < parts.size(); ++i)
    files.emplace_back(fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, parts.size()),
                       tensor_file(parts[i]));
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return looked(**opened, {});
}

}  // namespace

TEST_CASE("mixed saves: one part of another dtype is named") {
  const CheckReport report =
      checked_parts({layer_tensors(0, "BF16"), layer_tensors(1, "F32"), layer_tensors(2, "BF16")});
  const Finding* finding = find(report, "mixed-saves");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects == std::vector<std::string>{"model-00002-of-00003.safetensors"});
}

TEST_CASE("mixed saves: modules that a model keeps in more bits raise nothing") {
  CHECK(find(checked_parts({layer_tensors(0, "BF16"), layer_tensors(1, "BF16")}), "mixed-saves") ==
        nullptr);
  // Modules that no other file has.
  NamedTensors other;
  for (const char* name : {"a", "b", "c", "d"}) other[name] = {"F32", {8, 8}};
  CHECK(find(checked_parts({layer_tensors(0, "BF16"), other, layer_tensors(1, "BF16")}),
             "mixed-saves") == nullptr);
  // Every part has some tensors of both dtypes.
  std::vector<NamedTensors> mixed = {layer_tensors(0, "BF16"), layer_tensors(1, "BF16"),
                                     layer_tensors(2, "BF16")};
  for (NamedTensors& part : mixed) part.begin()->second.dtype = "F32";
  CHECK(find(checked_parts(mixed), "mixed-saves") == nullptr);
  // Two text encoders, each in its own dtype.
  std::vector<NamedTensors> encoders(2);
  for (std::size_t i = 0; i < 2; ++i)
    for (const char* name : {"q_proj", "k_proj", "v_proj"})
      encoders[i][fmt::format("text_encoder_{}.{}.weight", i, name)] = {i == 0 ? "BF16" : "F32",
                                                                        {8, 8}};
  CHECK(find(checked_parts(encoders), "mixed-saves") == nullptr);
}

TEST_CASE("mixed saves: of two parts in two dtypes both are named") {
  const CheckReport report = checked_parts({layer_tensors(0, "BF16"), layer_tensors(1, "F32")});
  const Finding* finding = find(report, "mixed-saves");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->subjects.size() == 2);
}

TEST_CASE("mixed saves: what belongs in float32 does not hide a part of another dtype") {
  std::vector<NamedTensors> parts = {layer_tensors(0, "BF16"), layer_tensors(1, "F32"),
                                     layer_tensors(2, "BF16")};
  for (int layer : {0, 1, 2})
    parts[static_cast<std::size_t>(layer)]
         [fmt::format("model.layers.{}.mlp.gate.e_score_correction_bias", layer)] = {"F32", {8}};
  CHECK(find(checked_parts(parts), "mixed-saves") != nullptr);
}

namespace {

// Six layers in one file, layer 2 in `odd`, next to a config.json that says `declared`.
CheckReport checked_layers(const std::string& odd, const std::string& declared,
                           const std::string& extra = "") {
  NamedTensors tensors;
  for (int n = 0; n < 6; ++n) tensors.merge(layer_tensors(n, n == 2 ? odd : "BF16"));
  if (!extra.empty()) tensors["model.layers.4.q_proj.weight"].dtype = extra;
  std::vector<std::pair<std::string, Bytes>> files;
  files.emplace_back("model.safetensors", tensor_file(tensors));
  files.emplace_back("config.json",
                     to_bytes(R"({"model_type": "x", "torch_dtype": ")" + declared + R"("})"));
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return looked(**opened, {});
}

}  // namespace

TEST_CASE("mixed saves: one layer of another dtype than config.json and all others is named") {
  const CheckReport report = checked_layers("F32", "bfloat16");
  const Finding* finding = find(report, "mixed-saves");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  REQUIRE(finding->subjects.size() == 4);
  CHECK(finding->subjects[0] == "model.layers.2.down_proj.weight");
  CHECK(finding->cause.starts_with("All tensors of model.layers.2 are float32"));
}

TEST_CASE(
    "mixed saves: layers as config.json says, or single tensors in more bits, raise nothing") {
  CHECK(find(checked_layers("BF16", "bfloat16"), "mixed-saves") == nullptr);
  CHECK(find(checked_layers("F32", "float32"), "mixed-saves") == nullptr);
  CHECK(find(checked_layers("F32", "bfloat16", "F32"), "mixed-saves") == nullptr);
}
