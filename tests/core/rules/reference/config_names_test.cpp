// Tensors that the class of config.json always saves.
#include <doctest/doctest.h>

#include <set>

#include "core/facts/names/architectures.h"
#include "core/rules/on_fixtures.h"
#include "core/rules/reference/config_folder.h"

using namespace shw;
using namespace shw::test;

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
  CHECK(finding_of_side_file(beside_keys(inner, {})).empty());
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
  const auto told = finding_of_side_file(report, Severity::kWarning);
  const auto found = std::find_if(told.begin(), told.end(),
                                  [](const Finding* one) { return one->rule == "config-names"; });
  REQUIRE(found != told.end());
  CHECK((*found)->severity == Severity::kWarning);
  CHECK((*found)->subjects.front() == "model.layers.*.input_layernorm.weight");
}

TEST_CASE("config names: of an unknown class and of one with code of its own nothing is said") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("model.norm.weight");
  weights.shapes["model.final_norm.weight"] = {8};
  CHECK(names_all(only_one(beside_keys(weights, {}), "config-names", Severity::kError).cause,
                  {"model.final_norm.weight"}));
  // A buffer that older versions saved does not suggest another class.
  weights.shapes.erase("model.final_norm.weight");
  weights.shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {1};
  only_one(beside_keys(weights, {}), "config-names", Severity::kError);
  weights.shapes.erase("model.layers.0.self_attn.rotary_emb.inv_freq");
  CHECK(
      finding_of_side_file(beside_keys(weights, {{"auto_map", "{\"AutoModel\": \"mine.Model\"}"}}))
          .empty());
  CHECK(
      finding_of_side_file(beside_keys(weights, {{"architectures", "[\"ModelOfMine\"]"}})).empty());
}

TEST_CASE("config names: parts that are joined under a name the class does not have are reported") {
  ConfigWeights weights = llama_weights();
  std::set<std::string> lost;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string before = fmt::format("model.layers.{}.self_attn.", layer);
    for (const char* part : {"q", "k", "v"}) {
      lost.insert(before + part + "_proj.weight");
      weights.shapes.erase(before + part + "_proj.weight");
    }
    weights.shapes[before + "qkv_proj.weight"] = {16, 8};
  }
  const Finding finding = only_one(beside_keys(weights, {}), "config-names", Severity::kError);
  CHECK(std::set<std::string>(finding.subjects.begin(), finding.subjects.end()) == lost);
  CHECK(names_all(finding.cause, {"9 tensors", "3 names", "qkv_proj"}));
}

TEST_CASE("config names: endings that transformers renames itself are names of the class") {
  ConfigWeights weights = llama_weights();
  for (int layer = 0; layer < 3; ++layer) {
    const std::string norm = fmt::format("model.layers.{}.input_layernorm.", layer);
    weights.shapes.erase(norm + "weight");
    weights.shapes[norm + "gamma"] = {8};
  }
  CHECK(finding_of_side_file(beside_keys(weights, {})).empty());
}

TEST_CASE("config names: a shard that is not there is not told tensor by tensor") {
  ConfigWeights weights = llama_weights();
  weights.shapes.erase("model.norm.weight");
  const CheckReport report =
      checked_folder({{"config.json", bytes_of_text(config_text(llama_keys()))},
                      {"model-00001-of-00002.safetensors", weights.file()}});
  CHECK(finding_of_side_file(report).empty());
}

namespace {

const char* const kRenaming = "Gemma3ForConditionalGeneration";

// Two of each numbered tensor that the class always saves, named as in memory if `in_memory` is
// set.
ConfigWeights weights_of_class(bool in_memory, const std::string& before = "") {
  const auto architecture = architecture_named(kRenaming);
  REQUIRE(architecture.has_value());
  REQUIRE_FALSE(architecture->in_memory.empty());
  ConfigWeights weights;
  for (const NameGroup& group : architecture->groups) {
    for (const std::string& pattern : group.names) {
      std::string name = pattern;
      const auto renamed =
          std::find_if(architecture->in_memory.begin(), architecture->in_memory.end(),
                       [&](const auto& one) { return in_memory && name.starts_with(one.second); });
      if (renamed != architecture->in_memory.end())
        name = renamed->first + name.substr(renamed->second.size());
      for (const char* number : {"0", "1"}) {
        std::string numbered = name;
        if (const std::size_t at = name.find('*'); at != std::string::npos)
          numbered.replace(at, 1, number);
        const bool is_vector = name.find("norm") != name.npos || name.ends_with("bias");
        if (group.always)
          weights.shapes[before + numbered] = is_vector ? Extents{2} : Extents{2, 2};
      }
    }
  }
  return weights;
}

CheckReport checked_class(const ConfigWeights& weights, const char* is_tied = "true") {
  return beside_config(weights, fmt::format(R"({{"model_type": "gemma3", "architectures": ["{}"],
                                                "tie_word_embeddings": {}}})",
                                            kRenaming, is_tied));
}

}  // namespace

TEST_CASE("config names: names of the running model are checked as those that are saved") {
  ConfigWeights weights = weights_of_class(true);
  CHECK(rules_above_info(checked_class(weights)).empty());
  const std::string lost = "model.language_model.layers.1.mlp.up_proj.weight";
  REQUIRE(weights.shapes.erase(lost) == 1);
  const Finding finding = only_one(checked_class(weights), "config-names", Severity::kError);
  CHECK(finding.subjects == std::vector<std::string>{lost});
}

TEST_CASE("config names: a head that is not tied is missed among names of the running model") {
  ConfigWeights weights = weights_of_class(true);
  const Finding finding =
      only_one(checked_class(weights, "false"), "config-names", Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"lm_head.weight"});
  weights.shapes["lm_head.weight"] = {2, 2};
  CHECK(rules_above_info(checked_class(weights, "false")).empty());
}

TEST_CASE("wrapped names: a prefix before the saved names of a class that renames is reported") {
  CHECK(rules_above_info(checked_class(weights_of_class(false))).empty());
  CHECK(rules_above_info(checked_class(weights_of_class(false, "model."))) ==
        std::vector<std::string>{"wrapped-names"});
  // Under another model type the same class is saved with the prefix.
  const std::string other_type = fmt::format(
      R"({{"model_type": "shieldgemma2", "architectures": ["{}"], "tie_word_embeddings": true}})",
      kRenaming);
  CHECK(rules_above_info(beside_config(weights_of_class(false, "model."), other_type)).empty());
}

TEST_CASE("wrapped names: an adapter among the weights of a model is reported") {
  ConfigWeights weights = llama_weights();
  weights.shapes["model.layers.1.self_attn.q_proj.lora_A.weight"] = {2, 8};
  weights.shapes["model.layers.1.self_attn.q_proj.lora_B.weight"] = {8, 2};
  const CheckReport report = beside_keys(weights, {});
  const auto rules = rules_above_info(report);
  CHECK(std::find(rules.begin(), rules.end(), "wrapped-names") != rules.end());
}

TEST_CASE("token ids: an id beyond the rows of the embedding is reported with its token") {
  const auto told = [](const std::string& file, const std::string& text) {
    const CheckReport report =
        checked_folder({{"config.json", bytes_of_text(config_text(llama_keys()))},
                        {"model.safetensors", llama_weights().file()},
                        {file, bytes_of_text(text)}});
    std::string causes;
    for (const Finding& finding : report.findings) {
      if (finding.rule == "token-ids") causes += finding.cause + "\n";
    }
    return causes;
  };
  const auto tokenizer = [](int id, const std::string& content) {
    return fmt::format(
        R"({{"version": "1.0", "added_tokens": [{{"id": 0, "content": "<s>", "special": true}},
            {{"id": {}, "content": "{}"}}], "model": {{"vocab": {{"id": 99}}}}}})",
        id, content);
  };
  CHECK(told("tokenizer.json", tokenizer(11, "<pad>")).empty());
  CHECK(names_all(told("tokenizer.json", tokenizer(12, "<pad>")), {"<pad> 12", "12 rows"}));
  CHECK(told("tokenizer.json", tokenizer(12, "<image_soft_token>")).empty());
  CHECK(told("tokenizer.json", "{\"added_tokens\": [{\"id\": 1e30, \"content\": [[[").empty());
  CHECK(names_all(told("added_tokens.json", R"({"<pad>": 13})"), {"<pad> 13"}));
  CHECK(names_all(told("generation_config.json", R"({"eos_token_id": [2, 40]})"),
                  {"eos_token_id 40"}));
  CHECK(
      told("generation_config.json", R"({"eos_token_id": [2, -1], "pad_token_id": null})").empty());
}

TEST_CASE("config names: layers under names of another class are reported") {
  ConfigWeights weights;
  for (const auto& [name, shape] : llama_weights().shapes) {
    const std::size_t at = name.find("layers.");
    weights.shapes[at == std::string::npos ? name : "model.blocks." + name.substr(at + 7)] = shape;
  }
  const Finding finding = only_one(beside_keys(weights, {}), "config-names", Severity::kWarning);
  CHECK(names_all(finding.cause, {"27 of 30 names", "model.blocks.0", "LlamaForCausalLM"}));
  CHECK(
      finding_of_side_file(beside_keys(weights, {{"architectures", "[\"ModelOfMine\"]"}})).empty());
}

TEST_CASE("config names: experts without a router are reported") {
  ConfigWeights weights = llama_weights();
  for (int layer = 0; layer < 3; ++layer) {
    const std::string mlp = fmt::format("model.layers.{}.mlp.", layer);
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
      const Extents shape = weights.shapes.at(mlp + part + ".weight");
      weights.shapes.erase(mlp + part + ".weight");
      for (int expert = 0; expert < 2; ++expert)
        weights.shapes[fmt::format("{}experts.{}.{}.weight", mlp, expert, part)] = shape;
    }
    weights.shapes[mlp + "gate.weight"] = {2, 8};
    for (const char* norm : {"q_norm", "k_norm"})
      weights.shapes[fmt::format("model.layers.{}.self_attn.{}.weight", layer, norm)] = {2};
  }
  const Keys keys = {{"model_type", "\"qwen3_moe\""},
                     {"architectures", "[\"Qwen3MoeForCausalLM\"]"},
                     {"head_dim", "2"},
                     {"moe_intermediate_size", "10"},
                     {"num_experts", "2"}};
  CHECK(rules_above_info(beside_keys(weights, keys)).empty());
  std::erase_if(weights.shapes, [](const auto& one) { return one.first.ends_with("gate.weight"); });
  const Finding finding = only_one(beside_keys(weights, keys), "config-names", Severity::kWarning);
  CHECK(finding.subjects == std::vector<std::string>{"model.layers.*.mlp.gate.weight"});
}

TEST_CASE("config names: attention without its table of relative positions is reported") {
  const auto t5 = architecture_named("T5ForConditionalGeneration");
  REQUIRE(t5.has_value());
  constexpr std::string_view kTable = "SelfAttention.relative_attention_bias.weight";
  ConfigWeights weights;
  for (const NameGroup& group : t5->groups) {
    for (std::string name : group.names) {
      if (!group.always && !name.ends_with(kTable)) continue;
      for (std::size_t at; (at = name.find('*')) != std::string::npos;) name[at] = '0';
      weights.shapes[name] = {4};
    }
  }
  const std::string config = R"({"model_type": "t5", "is_encoder_decoder": true,)"
                             R"("architectures": ["T5ForConditionalGeneration"]})";
  CHECK(finding_of_side_file(beside_config(weights, config)).empty());
  for (const char* stack : {"encoder", "decoder"}) {
    CAPTURE(stack);
    ConfigWeights lost = weights;
    REQUIRE(lost.shapes.erase(fmt::format("{}.block.0.layer.0.{}", stack, kTable)) == 1);
    const CheckReport report = beside_config(lost, config);
    auto told = finding_of_side_file(report, Severity::kWarning);
    REQUIRE(told.size() == 1);
    CHECK(told.front()->rule == "config-names");
    CHECK(told.front()->subjects ==
          std::vector<std::string>{fmt::format("{}.block.*.layer.*.{}", stack, kTable)});
  }
}

TEST_CASE("config names: a tied head of another name is not missed") {
  ConfigWeights weights;
  weights.shapes = {{"gpt_neox.embed_in.weight", {12, 8}},
                    {"gpt_neox.final_layer_norm.weight", {8}},
                    {"gpt_neox.final_layer_norm.bias", {8}}};
  const auto says_head = [&](const char* tied) {
    const Keys keys = {{"model_type", "\"gpt_neox\""},
                       {"architectures", "[\"GPTNeoXForCausalLM\"]"},
                       {"num_hidden_layers", "0"},
                       {"tie_word_embeddings", tied}};
    const CheckReport report = beside_keys(weights, keys);
    for (const Finding* finding : finding_of_side_file(report, Severity::kWarning)) {
      for (const std::string& subject : finding->subjects)
        if (subject == "embed_out.weight") return true;
    }
    return false;
  };
  CHECK_FALSE(says_head("true"));
  CHECK(says_head("false"));
}

TEST_CASE("wrapped names: the prefix of the class or of a part is not a wrapper's") {
  ConfigWeights answers;
  for (const auto& [name, shape] : llama_weights().shapes) {
    if (name != "lm_head.weight") answers.shapes["transformer." + name.substr(6)] = shape;
  }
  answers.shapes["qa_outputs.weight"] = {2, 8};
  answers.shapes["qa_outputs.bias"] = {2};
  const Keys keys = {{"architectures", "[\"LlamaForQuestionAnswering\"]"}};
  CHECK(rules_above_info(beside_keys(answers, keys)).empty());
  ConfigWeights thinker;
  for (const auto& [name, shape] : llama_weights().shapes)
    thinker.shapes["thinker." + name] = shape;
  const Keys omni = {{"model_type", "\"brand_new_omni\""},
                     {"architectures", "[\"BrandNewOmni\"]"},
                     {"thinker_config", "{\"model_type\": \"brand_new_thinker\"}"}};
  CHECK(rules_above_info(beside_keys(thinker, omni)).empty());
}

TEST_CASE("wrapped names: names that lack the part of the class that they are of get it") {
  const auto report_with = [](const std::string& part) {
    ConfigWeights weights;
    weights.shapes = {{"shared.weight", {12, 8}}, {"decoder.final_layer_norm.weight", {8}}};
    for (const char* matrix : {"q", "k", "v", "o"})
      weights.shapes[fmt::format("{}block.0.layer.0.SelfAttention.{}.weight", part, matrix)] = {8,
                                                                                                8};
    return beside_config(
        weights, R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]})");
  };
  CHECK(find(report_with("encoder."), "wrapped-names") == nullptr);
  const CheckReport report = report_with("");
  const Finding* finding = find(report, "wrapped-names");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(names_all(finding->cause, {"4 of 6", "`encoder.`", "T5ForConditionalGeneration"}));
  CHECK(finding->diagnoses.size() == 4);
}

TEST_CASE("config: sizes that are not the reference's are reported where all shapes are equal") {
  const auto opened = [](const std::string& heads, int layers) {
    Keys keys = llama_keys();
    keys["num_attention_heads"] = heads;
    keys["max_position_embeddings"] = heads;
    return open_checkpoint(
        memory_directory("hf", {{"config.json", bytes_of_text(config_text(keys))},
                                {"model.safetensors", llama_weights(layers).file()}}));
  };
  const auto own = opened("4", 3);
  REQUIRE(own.has_value());
  const auto differences = [&](const std::string& heads, int layers) {
    const auto other = opened(heads, layers);
    REQUIRE(other.has_value());
    CheckOptions options;
    options.reference = *other;
    const auto report = check(**own, options);
    REQUIRE(report.has_value());
    std::string causes;
    for (const Finding& finding : report->findings) {
      if (finding.rule == "config-shape") causes += finding.cause;
    }
    return causes;
  };
  CHECK(differences("4", 3).empty());
  CHECK(names_all(differences("2", 3), {"num_attention_heads 4, there 2"}));
  CHECK(differences("2", 3).find("max_position") == std::string::npos);
  CHECK(differences("2", 2).empty());
}
