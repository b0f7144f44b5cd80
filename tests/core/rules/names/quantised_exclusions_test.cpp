// Weights that a quantisation config excludes, or fails to exclude.
#include "core/facts/names/ignored_modules.h"
#include "core/rules/names/named_tensors.h"

using namespace shw;
using namespace shw::test;

namespace {

void add_float8(NamedTensors& tensors, const std::string& module) {
  tensors[module + ".weight"] = {"F8_E4M3", {10, 8}};
  tensors[module + ".weight_scale"] = {"BF16", {10, 1}};
}

// Two layers with a quantised q_proj and down_proj, next to a plain head.
NamedTensors partly_quantised() {
  NamedTensors out;
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add_float8(out, layer + "self_attn.q_proj");
    add_float8(out, layer + "mlp.down_proj");
    out[layer + "input_layernorm.weight"] = {"BF16", {8}};
  }
  out["model.embed_tokens.weight"] = {"BF16", {12, 8}};
  out["lm_head.weight"] = {"BF16", {12, 8}};
  return out;
}

std::string causes_of(const NamedTensors& tensors, const std::string& more) {
  return all_causes(
      checked_tensors(tensors, {{"config.json", fmt::format(R"({{"model_type": "of_nobody",
         "quantization_config": {{"quant_method": "compressed-tensors",
           "format": "float-quantized", {}}}}})",
                                                            more)}}),
      "quantised-pairs");
}

}  // namespace

TEST_CASE("surely_names: globs and simple expressions name whole parts of a module's name") {
  CHECK(surely_names("lm_head*", "lm_head"));
  CHECK(surely_names("*lm_head", "model.lm_head"));
  CHECK(surely_names("model.layers.*.self_attn", "model.layers.3.self_attn"));
  CHECK(surely_names("model.layers.1*", "model.layers.1.mlp.up_proj"));
  CHECK(surely_names("re:.*self_attn.*", "model.layers.3.self_attn.q_proj"));
  CHECK(surely_names(R"(re:visual\..*)", "visual.blocks.0.fc1"));
  CHECK(surely_names("re:.*mlp.gate$", "model.layers.3.mlp.gate"));
}

TEST_CASE("surely_names: what may be meant otherwise is left undecided") {
  CHECK_FALSE(surely_names("model.layers.1*", "model.layers.10.mlp.up_proj"));
  CHECK_FALSE(surely_names("re:.*mlp.gate", "model.layers.3.mlp.gate_proj"));
  CHECK_FALSE(surely_names("re:.*mlp.gate$", "model.layers.3.mlp.gate.x"));
  CHECK_FALSE(surely_names("lm_head*", "model.lm_head"));
  CHECK_FALSE(surely_names("model.layers.*.self_attn", "model.layers.3.self_attn.q_proj"));
  CHECK_FALSE(surely_names(R"(re:.*layers\.\d+\.mlp)", "model.layers.3.mlp"));
  CHECK_FALSE(surely_names("re:(a|b)_proj", "a_proj"));
  for (const char* anything : {"*", "**", "", "re:", "re:.*", "re:^$", "re:...", "*.*", "\\"})
    CHECK_FALSE(surely_names(anything, "model.layers.3.mlp"));
  const std::string runs(300, '*');
  CHECK_FALSE(surely_names(runs + "abc", std::string(400, 'a')));
  CHECK_FALSE(surely_names(std::string(5000, 'a'), std::string(5000, 'a')));
}

TEST_CASE("quantised pairs: a quantised weight that a pattern excludes is reported") {
  NamedTensors tensors = partly_quantised();
  CHECK(causes_of(tensors, R"("ignore": ["lm_head*"])").empty());
  CHECK(causes_of(tensors, R"("ignore": ["re:.*lm_head"])").empty());
  add_float8(tensors, "lm_head");
  CHECK(causes_of(tensors, R"("ignore": [])").empty());
  for (const char* pattern : {"lm_head*", "re:.*lm_head", "*lm_head*", "lm_head"}) {
    CAPTURE(pattern);
    const std::string causes = causes_of(tensors, fmt::format(R"("ignore": ["{}"])", pattern));
    CHECK(causes.find(fmt::format("lm_head.weight: {}", pattern)) != std::string::npos);
  }
}

TEST_CASE("quantised pairs: projections that no layer quantises are reported") {
  NamedTensors tensors = partly_quantised();
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    tensors[layer + "mlp.up_proj.weight"] = {"BF16", {10, 8}};
    tensors[layer + "mlp.gate.weight"] = {"BF16", {4, 8}};  // a router may be plain
  }
  const std::string causes = causes_of(tensors, R"("ignore": ["lm_head"])");
  CHECK(causes.find("2 weights are not quantised") != std::string::npos);
  CHECK(causes.find("model.layers.0.mlp.up_proj.weight") != std::string::npos);
  CHECK(causes.find("mlp.gate.weight") == std::string::npos);
  for (const char* exempt :
       {R"("ignore": ["model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"])",
        R"("ignore": ["re:.*up_proj"])",
        R"("config_groups": {"group_0": {"targets": ["re:.*q_proj", "re:.*down_proj"]}})"}) {
    CAPTURE(exempt);
    CHECK(causes_of(tensors, exempt).empty());
  }
}

TEST_CASE("quantised pairs: projections outside the quantised layers may be plain") {
  NamedTensors tensors = partly_quantised();
  tensors["visual.layers.0.up_proj.weight"] = {"BF16", {10, 8}};
  tensors["model.layers.2.mlp.up_proj.weight"] = {"BF16", {10, 8}};
  tensors["mtp.layers.0.mlp.up_proj.weight"] = {"BF16", {10, 8}};
  CHECK(causes_of(tensors, R"("ignore": ["lm_head"])").empty());
}

TEST_CASE("quantised pairs: excluded names of another form than the stored ones are reported") {
  NamedTensors tensors = partly_quantised();
  tensors["model.layers.0.linear_attn.in_proj_qkvz.weight"] = {"BF16", {10, 8}};
  tensors["model.layers.0.linear_attn.norm.weight"] = {"BF16", {8}};
  const std::string old = R"("ignore": ["lm_head", "model.layers.0.linear_attn.in_proj_qkv",
                                        "model.layers.0.linear_attn.in_proj_z"])";
  const std::string causes = causes_of(tensors, old);
  CHECK(causes.find("linear_attn.in_proj_qkvz.weight") != std::string::npos);
  CHECK(causes.find("1 name that no module has") != std::string::npos);
  CHECK(causes.find("model.layers.0.linear_attn.in_proj_qkv)") != std::string::npos);
  // Without names of the same module nothing is known of it.
  CHECK(causes_of(tensors, R"("ignore": ["lm_head"])").empty());
  CHECK(causes_of(tensors,
                  R"("ignore": ["lm_head", "model.layers.0.linear_attn.in_proj_qkvz",
                                "model.layers.0.linear_attn.in_proj_qkv"])")
            .empty());
  CHECK(causes_of(tensors, R"("ignore": ["model.layers.0.linear_attn.out_proj"])").empty());
}

TEST_CASE("quantised pairs: lists in the forms that other loaders read exempt too") {
  NamedTensors tensors = partly_quantised();
  for (int i = 0; i < 2; ++i)
    tensors[fmt::format("model.layers.{}.mlp.up_proj.weight", i)] = {"BF16", {10, 8}};
  CHECK_FALSE(causes_of(tensors, R"("ignore": ["lm_head"])").empty());
  for (const char* exempt :
       {R"("ignore": ["model.layers.0.", "model.layers.1."])", R"("ignore": ["lp.up_proj"])",
        R"("ignore": ["model.language_model.layers.0.mlp.up_proj",
                                           "model.language_model.layers.1.mlp.up_proj"])"}) {
    CAPTURE(exempt);
    CHECK(causes_of(tensors, exempt).empty());
  }
}
