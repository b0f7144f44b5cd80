// One tensor-parallel rank's weights published as a whole model, by config.json and by a reference.
#include <doctest/doctest.h>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/rules/check.h"
#include "core/tensor/shape.h"

using namespace shw;
using namespace shw::test;

namespace {

using Shapes = std::vector<std::pair<std::string, Extents>>;

std::string list_of(const Extents& extents) {
  std::string text;
  for (std::int64_t extent : extents) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

// A Llama of two layers on `ranks`, of which this is one; the vocabulary is padded to 512.
Shapes llama(std::int64_t ranks, std::int64_t vocabulary) {
  Shapes shapes = {{"model.embed_tokens.weight", {vocabulary, 16}},
                   {"lm_head.weight", {vocabulary, 16}},
                   {"model.norm.weight", {16}}};
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) {
    auto add = [&](const char* name, Extents shape) {
      shapes.emplace_back(layer + std::string(name) + ".weight", std::move(shape));
    };
    add("self_attn.q_proj", {32 / ranks, 16});
    add("self_attn.k_proj", {16 / ranks, 16});
    add("self_attn.v_proj", {16 / ranks, 16});
    add("self_attn.o_proj", {16, 32 / ranks});
    add("mlp.gate_proj", {64 / ranks, 16});
    add("mlp.up_proj", {64 / ranks, 16});
    add("mlp.down_proj", {16, 64 / ranks});
    add("input_layernorm", {16});
    add("post_attention_layernorm", {16});
  }
  return shapes;
}

std::shared_ptr<const Checkpoint> opened(const Shapes& shapes, bool has_config) {
  std::string header = "{";
  std::int64_t end = 0;
  for (const auto& [fqn, shape] : shapes) {
    const std::int64_t begin = end;
    end += 4 * *volume(shape);
    header += (begin == 0 ? "\"" : ",\"") + fqn + R"(":{"dtype":"F32","shape":)" + list_of(shape) +
              R"(,"data_offsets":)" + list_of({begin, end}) + "}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::vector<std::pair<std::string, Bytes>> files = {
      {"model.safetensors", to_bytes(little(header.size(), 8) + header +
                                     std::string(static_cast<std::size_t>(end), '\1'))}};
  if (has_config)
    files.emplace_back(
        "config.json",
        to_bytes(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":16,)"
                 R"("intermediate_size":64,"num_attention_heads":8,"num_key_value_heads":4,)"
                 R"("head_dim":4,"num_hidden_layers":2,"vocab_size":500,)"
                 R"("tie_word_embeddings":false,"torch_dtype":"float32"})"));
  auto checkpoint = open_checkpoint(memory_directory("ckpt", std::move(files)));
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

const Finding* part_in(const CheckReport& report) {
  for (const Finding& finding : report.findings) {
    if (finding.rule == "local-saved-as-global") return &finding;
  }
  return nullptr;
}

}  // namespace

TEST_CASE(
    "one rank's part: sizes that config.json has as many times over are named with the ranks") {
  for (const Shapes& shapes : {llama(1, 64), llama(2, 256)}) {
    auto report = check(*opened(shapes, true), {});
    REQUIRE(report.has_value());
    const Finding* finding = part_in(*report);
    REQUIRE(finding != nullptr);
    CHECK(finding->severity == Severity::kError);
    const bool is_vocabulary = finding->subjects.size() == 2;
    CHECK(finding->cause.find(is_vocabulary ? "one rank of 8" : "one rank of 2") !=
          std::string::npos);
    // config.json is not taken for another model's.
    for (const Finding& other : report->findings)
      CHECK((&other == finding || other.severity == Severity::kInfo));
  }
}

TEST_CASE("one rank's part: whole weights and those of another model are none") {
  auto whole = check(*opened(llama(1, 500), true), {});
  REQUIRE(whole.has_value());
  CHECK(whole->findings.empty());
  Shapes other = llama(1, 500);
  for (auto& [fqn, shape] : other) {
    for (std::int64_t& extent : shape) extent = extent == 64 ? 32 : extent;
  }
  auto differs = check(*opened(other, true), {});
  REQUIRE(differs.has_value());
  CHECK(part_in(*differs) == nullptr);
  CHECK(differs->verdict == Verdict::kFindings);
}

TEST_CASE("one rank's part: next to a reference every smaller weight is one rank's") {
  CheckOptions options;
  options.reference = opened(llama(1, 512), false);
  auto report = check(*opened(llama(2, 256), false), options);
  REQUIRE(report.has_value());
  const Finding* finding = part_in(*report);
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("one rank of 2") != std::string::npos);
  auto same_size = check(*opened(llama(1, 512), false), options);
  REQUIRE(same_size.has_value());
  CHECK(part_in(*same_size) == nullptr);
}
