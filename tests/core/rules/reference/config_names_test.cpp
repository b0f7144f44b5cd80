// Tensors that the class of config.json always saves.
#include <doctest/doctest.h>

#include <set>

#include "core/facts/names/architectures.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;

TEST_CASE("architectures: the names of a class are those that transformers saves") {
  const auto llama = architecture_named("LlamaForCausalLM");
  REQUIRE(llama.has_value());
  CHECK(llama->prefix == "model");
  std::set<std::string> always;
  for (const NameGroup& group : llama->groups) {
    if (group.always) always.insert(group.names.begin(), group.names.end());
  }
  std::set<std::string> expected;
  for (const auto& [name, shape] : llama_weights(1).shapes) {
    std::string pattern = name;
    if (const std::size_t at = name.find(".0."); at != std::string::npos)
      pattern.replace(at, 3, ".*.");
    expected.insert(pattern);
  }
  expected.erase("lm_head.weight");  // may be tied
  CHECK(always == expected);
  CHECK_FALSE(architecture_named("LlamaForNothing").has_value());
  CHECK_FALSE(architecture_named("").has_value());
  CHECK_FALSE(architecture_named("a\"\nb").has_value());
}

TEST_CASE("config names: a tensor that one layer lacks is an error with its name") {
  for (const char* lost : {"model.layers.1.self_attn.k_proj.weight",
                           "model.layers.0.post_attention_layernorm.weight", "model.norm.weight"}) {
    CAPTURE(lost);
    ConfigWeights weights = llama_weights();
    weights.shapes.erase(lost);
    const Finding finding = only_one(beside_keys(weights, {}), "config-names", Severity::kError);
    CHECK(finding.subjects == std::vector<std::string>{lost});
    CHECK(names_all(finding.cause, {"LlamaForCausalLM", "1 tensor"}));
  }
}

TEST_CASE("config names: names without the prefix of the class are the same names") {
  ConfigWeights inner;
  for (const auto& [name, shape] : llama_weights().shapes)
    inner.shapes[name.starts_with("model.") ? name.substr(6) : name] = shape;
  CHECK(told_of(beside_keys(inner, {})).empty());
  inner.shapes.erase("layers.2.input_layernorm.weight");
  const Finding finding = only_one(beside_keys(inner, {}), "config-names", Severity::kError);
  CHECK(finding.subjects == std::vector<std::string>{"layers.2.input_layernorm.weight"});
}

TEST_CASE("config names: what all layers lack is a warning with a pattern") {
  ConfigWeights weights;
  for (const auto& [name, shape] : llama_weights().shapes) {
    if (name.find("layers.") == std::string::npos) weights.shapes[name] = shape;
  }
  const CheckReport report = beside_keys(weights, {});
  const auto told = told_of(report, Severity::kWarning);
  const auto found = std::find_if(told.begin(), told.end(),
                                  [](const Finding* one) { return one->rule == "config-names"; });
  REQUIRE(found != told.end());
  CHECK((*found)->severity == Severity::kWarning);
  CHECK((*found)->subjects.front() == "model.layers.*.input_layernorm.weight");
}

TEST_CASE("config names: nothing is said where a lost tensor may have another name") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("model.norm.weight");
  weights.shapes["model.final_norm.weight"] = {8};
  CHECK(told_of(beside_keys(weights, {})).empty());
  // A buffer that older versions saved is no other name.
  weights.shapes.erase("model.final_norm.weight");
  weights.shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {1};
  only_one(beside_keys(weights, {}), "config-names", Severity::kError);
  weights.shapes.erase("model.layers.0.self_attn.rotary_emb.inv_freq");
  CHECK(told_of(beside_keys(weights, {{"auto_map", "{\"AutoModel\": \"mine.Model\"}"}})).empty());
  CHECK(told_of(beside_keys(weights, {{"architectures", "[\"ModelOfMine\"]"}})).empty());
}

TEST_CASE("config names: a shard that is not there is not told tensor by tensor") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("model.norm.weight");
  const CheckReport report =
      checked_folder({{"config.json", bytes_of_text(config_text(llama_keys()))},
                      {"model-00001-of-00002.safetensors", weights.file()}});
  CHECK(told_of(report).empty());
}
