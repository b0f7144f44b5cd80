#include "core/formats/gguf/gguf_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "core/base/words.h"

namespace shw {
namespace {

// Tensor names by block number: "blk.3.ffn_up.weight" is "ffn_up.weight" of block 3.
using NamesByBlock = std::map<std::uint64_t, std::set<std::string>>;

struct GgufModel {
  std::string architecture;                      // "llama"
  std::map<std::string, std::uint64_t> numbers;  // "block_count", without the architecture prefix
  std::set<std::string> keys;                    // without the architecture prefix
  std::map<std::string, Extents> tensors;
  std::optional<std::uint64_t> tokens;  // of the tokenizer
  NamesByBlock blocks;

  std::optional<std::uint64_t> number(const std::string& key) const {
    auto found = numbers.find(key);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
};

void add_block(std::string_view name, NamesByBlock& blocks) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return;
  name.remove_prefix(kBlock.size());
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc{} || end == name.data() + name.size() || *end != '.') return;
  // Ignores NVFP4 scales: llama.cpp also loads blocks without them, whose weights are not
  // quantised.
  if (name.ends_with(".scale") || name.ends_with(".input_scale")) return;
  blocks[number].emplace(name.substr(static_cast<std::size_t>(end - name.data()) + 1));
}

// Architectures for which llama.cpp asks for output_norm.weight in any case. OLMo has norms without
// weights, and encoders and T5 have other names.
constexpr auto kArchitecturesWithOutputNorm = std::to_array<std::string_view>(
    {"llama",   "llama4",    "qwen2",   "qwen2moe",  "qwen3",     "qwen3moe",   "gemma",
     "gemma2",  "gemma3",    "phi2",    "phi3",      "falcon",    "gpt2",       "gptneox",
     "bloom",   "stablelm",  "olmo2",   "granite",   "starcoder", "starcoder2", "deepseek2",
     "gpt-oss", "internlm2", "minicpm", "command-r", "cohere2"});

// nullopt unless all parts of one language model exist: projectors, adapters and importance
// matrices have other keys.
std::optional<GgufModel> language_model_of_files(const GgufFiles& found) {
  if (!found.missing.empty()) return std::nullopt;
  GgufModel model;
  std::uint64_t parts = 1;
  for (const GgufFile& file : found.files) {
    if (!file.header) return std::nullopt;
    const GgufHeader& header = *file.header;
    parts = std::max(parts, header.number("split.count").value_or(1));
    if (const std::string type = header.text("general.type"); !type.empty() && type != "model")
      return std::nullopt;
    if (model.architecture.empty()) model.architecture = header.text("general.architecture");
    for (const GgufTensor& tensor : header.tensors) {
      model.tensors.emplace(tensor.name, tensor.shape);
      add_block(tensor.name, model.blocks);
    }
    if (auto tokens = header.lengths.find("tokenizer.ggml.tokens"); tokens != header.lengths.end())
      model.tokens = tokens->second;
    const std::string before = model.architecture + ".";
    for (const auto& [key, value] : header.numbers) {
      if (key.starts_with(before)) model.numbers.emplace(key.substr(before.size()), value);
    }
    for (const std::string& key : header.keys) {
      if (key.starts_with(before)) model.keys.insert(key.substr(before.size()));
    }
  }
  if (parts != found.files.size() || model.architecture.empty() || model.architecture == "clip" ||
      model.blocks.empty())
    return std::nullopt;
  return model;
}

class GgufKeys {
 public:
  GgufKeys(const GgufModel& model, std::vector<Finding>& findings)
      : model_(model), findings_(findings) {}

  void compare() {
    compare_blocks();
    compare_embedding();
    compare_output_norm();
    compare_heads();
    compare_tokens();
    compare_widths();
    report_incomplete_block();
  }

 private:
  void report(std::string cause, std::vector<std::string> subjects, std::string key) {
    Finding finding{.rule = "gguf-keys", .severity = Severity::kError};
    finding.cause = std::move(cause);
    finding.evidence = {{"key", std::move(key)},
                        {"count", static_cast<std::int64_t>(subjects.size())}};
    finding.subjects = std::move(subjects);
    findings_.push_back(std::move(finding));
  }
  std::string key(const char* name) const { return model_.architecture + "." + name; }

  void compare_blocks() {
    const auto said = model_.number("block_count");
    const std::uint64_t there = model_.blocks.rbegin()->first + 1;
    if (!said || *said == there) return;
    const std::string where =
        fmt::format("{} says {}, but the file has {} (blk.0 to blk.{})", key("block_count"), *said,
                    plural(model_.blocks.size(), "block"), there - 1);
    if (*said < there)
      return report(where + ": llama.cpp finds more tensors than it expects, and refuses the file.",
                    {fmt::format("blk.{}", *said)}, key("block_count"));
    // The key also counts layers for multi-token prediction that a converter omits.
    const bool predicts = model_.keys.contains("nextn_predict_layers");
    report(where +
               fmt::format(": llama.cpp fails with \"missing tensor 'blk.{}.attn_norm.weight'\". ",
                           there) +
               (predicts ? "The header also names nextn_predict_layers: block_count includes "
                           "multi-token prediction layers whose tensors are missing."
                         : "The rest was lost, or block_count includes multi-token prediction "
                           "layers that the converter left out."),
           {fmt::format("blk.{}", there)}, key("block_count"));
  }

  void compare_embedding() {
    auto table = model_.tensors.find("token_embd.weight");
    const auto said = model_.number("embedding_length");
    if (!said) return;
    if (table == model_.tensors.end())
      return report(
          "token_embd.weight, the token embedding, is missing: llama.cpp fails with \"missing "
          "tensor 'token_embd.weight'\".",
          {"token_embd.weight"}, "token_embd.weight");
    if (table->second.size() != 2) return;
    const auto there = static_cast<std::uint64_t>(table->second[1]);
    if (there == *said) return;
    report(fmt::format("{} says {}, and rows of token_embd.weight have {} elements: llama.cpp "
                       "fails with \"wrong shape\".",
                       key("embedding_length"), *said, there),
           {"token_embd.weight"}, key("embedding_length"));
  }

  void compare_output_norm() {
    const std::string name = "output_norm.weight";
    // Some files have a part of a model alone: blocks, or LoRA's matrices.
    const bool is_model = model_.tensors.contains("token_embd.weight") &&
                          model_.tensors.contains(
                              fmt::format("blk.{}.attn_norm.weight", model_.blocks.begin()->first));
    if (!is_model || model_.tensors.contains(name) ||
        std::find(kArchitecturesWithOutputNorm.begin(), kArchitecturesWithOutputNorm.end(),
                  model_.architecture) == kArchitecturesWithOutputNorm.end())
      return;
    report(
        fmt::format(
            "{}, the norm after the last block, is missing: llama.cpp fails with \"missing tensor "
            "'{}'\". The converter did not know its name, or the converted model did not have it.",
            name, name),
        {name}, name);
  }

  // Rows of attn_k in the first block that has it.
  void compare_heads() {
    const auto heads = model_.number("attention.head_count"),
               groups = model_.number("attention.head_count_kv"),
               width = model_.number("embedding_length");
    if (!heads || !groups || !width || *heads == 0 || *heads > *width ||
        model_.keys.contains("attention.key_length_swa") ||
        model_.keys.contains("attention.key_length_mla"))
      return;
    const std::uint64_t length = model_.number("attention.key_length").value_or(*width / *heads);
    std::vector<std::string> subjects;
    std::int64_t rows = 0;
    for (const auto& [block, names] : model_.blocks) {
      const std::string name = fmt::format("blk.{}.attn_k.weight", block);
      auto found = model_.tensors.find(name);
      if (found == model_.tensors.end() || found->second.size() != 2) continue;
      if (static_cast<std::uint64_t>(found->second[0]) == *groups * length) return;
      subjects.push_back(name);
      rows = found->second[0];
    }
    if (subjects.empty()) return;
    report(fmt::format("{} says {}, and keys of {} elements make {} rows; attn_k has {}: llama.cpp "
                       "fails with \"wrong shape\", or splits the heads wrongly.",
                       key("attention.head_count_kv"), *groups, length, *groups * length, rows),
           std::move(subjects), key("attention.head_count_kv"));
  }

  void compare_tokens() {
    auto table = model_.tensors.find("token_embd.weight");
    if (!model_.tokens || table == model_.tensors.end() || table->second.size() != 2) return;
    const auto rows = static_cast<std::uint64_t>(table->second[0]);
    if (rows == *model_.tokens) return;
    report(fmt::format("tokenizer.ggml.tokens lists {}, and token_embd.weight has {}: llama.cpp "
                       "fails with \"wrong shape\". The tokenizer belongs to another model, or "
                       "tokens were added without embedding rows.",
                       plural(*model_.tokens, "token"), plural(rows, "row")),
           {"token_embd.weight"}, "tokenizer.ggml.tokens");
  }

  void compare_widths() {
    // Architectures with gate and up in one tensor have twice the rows.
    compare_width("feed_forward_length", "ffn_up.weight", 2, 0, 2);
    compare_width("expert_count", "ffn_up_exps.weight", 3, 0, 1);
    compare_width("expert_count", "ffn_down_exps.weight", 3, 0, 1);
    compare_width("expert_feed_forward_length", "ffn_up_exps.weight", 3, 1, 2);
  }

  // Reports an axis of a tensor that differs in all blocks that have it.
  void compare_width(const char* name, std::string_view tensor, std::size_t ndim, std::size_t axis,
                     std::uint64_t most_times) {
    const auto said = model_.number(name);
    if (!said || *said == 0) return;
    std::vector<std::string> subjects;
    std::uint64_t there = 0;
    for (const auto& [block, names] : model_.blocks) {
      const std::string fqn = fmt::format("blk.{}.{}", block, tensor);
      auto found = model_.tensors.find(fqn);
      if (found == model_.tensors.end() || found->second.size() != ndim) continue;
      there = static_cast<std::uint64_t>(found->second[axis]);
      if (there == *said || (most_times == 2 && there / 2 == *said)) return;
      subjects.push_back(fqn);
    }
    if (subjects.empty()) return;
    std::string cause =
        fmt::format("{} says {}, and {} has {}: llama.cpp fails with \"wrong shape\".", key(name),
                    *said, subjects.front(), there);
    report(std::move(cause), std::move(subjects), key(name));
  }

  // Reports a block that lacks tensors of otherwise equal blocks. Models with several kinds of
  // blocks are skipped, as are those with a different first block by design (RWKV).
  void report_incomplete_block() {
    if (model_.blocks.size() < 2 || model_.architecture.find("rwkv") != std::string::npos) return;
    std::map<std::set<std::string>, std::vector<std::uint64_t>> kinds;
    for (const auto& [block, names] : model_.blocks) kinds[names].push_back(block);
    if (kinds.size() != 2) return;
    const auto& [one, in_one] = *kinds.begin();
    const auto& [other, in_other] = *kinds.rbegin();
    const bool one_is_less = std::includes(other.begin(), other.end(), one.begin(), one.end());
    const bool other_is_less = std::includes(one.begin(), one.end(), other.begin(), other.end());
    if (!one_is_less && !other_is_less) return;
    const auto& less = one_is_less ? in_one : in_other;
    if (less.size() != 1) return;
    const auto& more = one_is_less ? other : one;
    const auto& there = one_is_less ? one : other;
    std::vector<std::string> lost;
    for (const std::string& name : more) {
      // Biases only in the first block and tensors for multi-token prediction are not expected
      // elsewhere.
      if (name.starts_with("nextn.") || name.starts_with("attn_rel_b")) return;
      if (!there.contains(name)) lost.push_back(fmt::format("blk.{}.{}", less.front(), name));
    }
    report(fmt::format("blk.{} does not have what {} {}: {} {} missing, and llama.cpp fails with "
                       "\"missing tensor '{}'\".",
                       less.front(),
                       model_.blocks.size() == 2 ? "the other block" : "all other blocks",
                       model_.blocks.size() == 2 ? "has" : "have", short_list_text(lost),
                       lost.size() == 1 ? "is" : "are", lost.front()),
           lost, "tensors");
  }

  const GgufModel& model_;
  std::vector<Finding>& findings_;
};

}  // namespace

std::vector<Finding> compare_gguf_keys(const GgufFiles& found) {
  std::vector<Finding> findings;
  if (auto model = language_model_of_files(found)) GgufKeys(*model, findings).compare();
  return findings;
}

}  // namespace shw
