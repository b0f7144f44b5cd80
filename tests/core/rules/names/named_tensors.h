// Folders of one safetensors file whose tensors have the names, dtypes and shapes that a test says.
#pragma once

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/open.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"

namespace shw::test {

struct NamedTensor {
  std::string dtype = "F32";
  Extents shape = {};
  float value = 0.5F;                 // of all elements of F32; others are 0 with 0 and else 1
  std::int64_t rows_with_value = -1;  // the others are zeros; -1: all have it
  std::int64_t columns_with_value = -1;
  std::int64_t one_of = 1;  // e.g. 2: every second element has it
};
using NamedTensors = std::map<std::string, NamedTensor>;

inline std::int64_t bytes_per_element(const std::string& dtype) {
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "I64") return 8;
  return dtype == "BF16" || dtype == "F16" || dtype == "I16" ? 2 : 1;
}

inline std::string elements_of(const NamedTensor& tensor) {
  const std::int64_t count = volume(tensor.shape).value();
  const char byte = tensor.value == 0 ? '\0' : '\1';
  std::string bytes(static_cast<std::size_t>(count * bytes_per_element(tensor.dtype)), byte);
  if (tensor.dtype != "F32") return bytes;
  const std::int64_t row = tensor.shape.empty() || count == 0 ? 1 : count / tensor.shape[0];
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_set = (tensor.rows_with_value < 0 || i / row < tensor.rows_with_value) &&
                        (tensor.columns_with_value < 0 || i % row < tensor.columns_with_value) &&
                        i % tensor.one_of == 0;
    const float value = is_set ? tensor.value : 0.0F;
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

inline Bytes bytes_from(const std::string& text) {
  Bytes out(text.size());
  std::transform(text.begin(), text.end(), out.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return out;
}

inline Bytes tensor_file(const NamedTensors& tensors) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}", data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    data += elements_of(tensor);
    std::string extents;
    for (std::int64_t extent : tensor.shape)
      extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
    header += fmt::format(R"(, "{}": {{"dtype": "{}", "shape": [{}], "data_offsets": [{}, {}]}})",
                          name, tensor.dtype, extents, begin, data.size());
  }
  header += "}";
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return bytes_from(length + header + data);
}

inline std::shared_ptr<const Checkpoint> opened_tensors(
    const NamedTensors& tensors, const std::map<std::string, std::string>& beside = {},
    const std::string& file = "model.safetensors") {
  std::vector<std::pair<std::string, Bytes>> files;
  for (const auto& [name, text] : beside) files.emplace_back(name, bytes_from(text));
  files.emplace_back(file, tensor_file(tensors));
  auto opened = open_checkpoint(memory_directory("made", std::move(files)));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

inline CheckReport checked_tensors(const NamedTensors& tensors,
                                   const std::map<std::string, std::string>& beside = {},
                                   Depth depth = Depth::kHeaders,
                                   const std::string& file = "model.safetensors") {
  CheckOptions options;
  options.depth = depth;
  return looked(*opened_tensors(tensors, beside, file), options);
}

// The tensors of a small Llama with `rename` done to each name.
template <class Rename>
NamedTensors llama_tensors(Rename rename) {
  NamedTensors out;
  auto add = [&](const std::string& name, Extents shape, float value) {
    out[rename(name)] = {"F32", std::move(shape), value};
  };
  add("model.embed_tokens.weight", {12, 8}, 0.25F);
  add("lm_head.weight", {12, 8}, 0.75F);
  add("model.norm.weight", {8}, 1.5F);
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const float value = static_cast<float>(i);
    add(layer + "input_layernorm.weight", {8}, 2.5F + value);
    add(layer + "self_attn.q_proj.weight", {8, 8}, 4.5F + value);
    add(layer + "self_attn.k_proj.weight", {4, 8}, 6.5F + value);
    add(layer + "mlp.up_proj.weight", {10, 8}, 8.5F + value);
  }
  return out;
}

inline const std::string kLlamaConfig =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 12,
        "hidden_size": 8, "intermediate_size": 10, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": false})";

inline std::string same_name(const std::string& name) {
  return name;
}

inline std::string all_causes(const CheckReport& report, std::string_view rule) {
  std::string causes;
  for (const Finding& finding : report.findings) {
    if (finding.rule == rule) causes += finding.cause + "\n";
  }
  return causes;
}

}  // namespace shw::test
