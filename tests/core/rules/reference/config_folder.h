// A Hugging Face folder with a config.json in memory, and its findings.
#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/formats/open.h"
#include "core/rules/check.h"

namespace shw {

// A safetensors file of zeros with these tensors.
struct ConfigWeights {
  std::map<std::string, Extents> shapes;
  std::string dtype = "F32";

  Bytes file() const {
    std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
    std::int64_t end = 0;
    for (const auto& [name, shape] : shapes) {
      const std::int64_t begin = end;
      end += (dtype == "F32" ? 4 : 2) * volume(shape).value();
      std::string extents;
      for (std::int64_t extent : shape)
        extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
      header += fmt::format(R"(, "{}": {{"dtype": "{}", "shape": [{}], "data_offsets": [{}, {}]}})",
                            name, dtype, extents, begin, end);
    }
    header += "}";
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
    bytes += header + std::string(static_cast<std::size_t>(end), '\0');
    Bytes out(bytes.size());
    std::transform(bytes.begin(), bytes.end(), out.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return out;
  }
};

inline ConfigWeights llama_weights(int layers = 3) {
  ConfigWeights out;
  out.shapes = {{"model.embed_tokens.weight", {12, 8}},
                {"model.norm.weight", {8}},
                {"lm_head.weight", {12, 8}}};
  for (int i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    out.shapes[layer + "input_layernorm.weight"] = {8};
    out.shapes[layer + "self_attn.q_proj.weight"] = {8, 8};
    out.shapes[layer + "self_attn.k_proj.weight"] = {4, 8};
    out.shapes[layer + "self_attn.v_proj.weight"] = {4, 8};
    out.shapes[layer + "self_attn.o_proj.weight"] = {8, 8};
    out.shapes[layer + "post_attention_layernorm.weight"] = {8};
    out.shapes[layer + "mlp.gate_proj.weight"] = {10, 8};
    out.shapes[layer + "mlp.up_proj.weight"] = {10, 8};
    out.shapes[layer + "mlp.down_proj.weight"] = {8, 10};
  }
  return out;
}

using Keys = std::map<std::string, std::string>;

inline Keys llama_keys() {
  return {{"model_type", "\"llama\""},
          {"architectures", "[\"LlamaForCausalLM\"]"},
          {"vocab_size", "12"},
          {"hidden_size", "8"},
          {"intermediate_size", "10"},
          {"num_hidden_layers", "3"},
          {"num_attention_heads", "4"},
          {"num_key_value_heads", "2"},
          {"tie_word_embeddings", "false"},
          {"torch_dtype", "\"float32\""}};
}

inline std::string config_text(const Keys& keys) {
  std::string text;
  for (const auto& [key, value] : keys)
    text += (text.empty() ? "{" : ", ") + fmt::format("\"{}\": {}", key, value);
  return text + "}";
}

inline Bytes bytes_of_text(std::string_view text) {
  Bytes out(text.size());
  std::transform(text.begin(), text.end(), out.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return out;
}

using FolderFiles = std::vector<std::pair<std::string, Bytes>>;

inline CheckReport checked_folder(FolderFiles files) {
  auto opened = open_checkpoint(memory_directory("hf", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  auto report = check(**opened, {});
  REQUIRE(report.has_value());
  return std::move(*report);
}

inline CheckReport beside_config(const ConfigWeights& weights, const std::string& config) {
  return checked_folder(
      {{"config.json", bytes_of_text(config)}, {"model.safetensors", weights.file()}});
}

inline CheckReport beside_keys(const ConfigWeights& weights, const Keys& changed) {
  Keys keys = llama_keys();
  for (const auto& [key, value] : changed) {
    keys[key] = value;
    if (value.empty()) keys.erase(key);
  }
  return beside_config(weights, config_text(keys));
}

inline std::vector<const Finding*> finding_of_side_file(const CheckReport& report,
                                                        Severity least = Severity::kInfo) {
  std::vector<const Finding*> told;
  for (const Finding& finding : report.findings) {
    if (finding.rule.starts_with("config-") && finding.severity >= least) told.push_back(&finding);
  }
  return told;
}

// The only one.
inline const Finding& only_one(const CheckReport& report, std::string_view rule,
                               Severity severity) {
  auto told = finding_of_side_file(report);
  REQUIRE(told.size() == 1);
  CAPTURE(told.front()->cause);
  CHECK(told.front()->rule == rule);
  CHECK(told.front()->severity == severity);
  CHECK(report.verdict == (severity == Severity::kInfo ? Verdict::kClean : Verdict::kFindings));
  return *told.front();
}

inline bool names_all(const std::string& text, std::initializer_list<const char*> words) {
  CAPTURE(text);
  return std::all_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

inline bool is_config_open(const CheckReport& report, std::string_view needs) {
  return std::any_of(report.unjudged.begin(), report.unjudged.end(), [&](const Unjudged& one) {
    return one.what.find("config.json") != std::string::npos &&
           one.needs.find(needs) != std::string::npos;
  });
}

}  // namespace shw
