#include "core/rules/names/adapter_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/plan_names.h"

namespace shw {
namespace {

bool is_of_lora(const AdapterConfig& config) {
  return config.peft_type == "LORA" || config.peft_type == "ADALORA";
}

// PEFT saves a module whole if its name ends in a text of modules_to_save, with or without a dot
// before it. Embeddings and heads may be saved whole without being listed (save_embedding_layers).
bool is_saved_whole(const AdapterConfig& config, std::string_view fqn) {
  constexpr auto kWithoutList = std::to_array<std::string_view>(
      {"embed", "lm_head", "wte", "classifier", "score", "qa_outputs", "modules_to_save"});
  const auto is_in_name = [&](std::string_view part) {
    return fqn.find(part) != std::string_view::npos;
  };
  return std::any_of(kWithoutList.begin(), kWithoutList.end(), is_in_name) ||
         std::any_of(config.saved.begin(), config.saved.end(),
                     [&](const std::string& saved) { return is_in_name(saved + "."); });
}

// PEFT takes the size of the blocks or their number, not both.
void report_two_block_settings(const AdapterConfig& config, std::vector<Finding>& findings) {
  struct BlockSizeSettings {
    std::string_view type, size, number;
  };
  constexpr auto kSettings = std::to_array<BlockSizeSettings>(
      {{"OFT", "oft_block_size", "r"}, {"BOFT", "boft_block_size", "boft_block_num"}});
  for (const BlockSizeSettings& one : kSettings) {
    const auto size = config.numbers.find(one.size), number = config.numbers.find(one.number);
    if (config.peft_type != one.type || size == config.numbers.end() ||
        number == config.numbers.end() || size->second == 0 || number->second == 0)
      continue;
    findings.push_back(adapter_contradiction(
        fmt::format(
            "adapter_config.json says {} {} and {} {}. PEFT fails unless one of the two is 0.",
            one.size, size->second, one.number, number->second),
        {kAdapterConfigFile}));
  }
}

}  // namespace

Finding adapter_contradiction(std::string cause, std::vector<std::string> subjects) {
  Finding finding{.rule = std::string(kAdapterContradicts.id), .severity = Severity::kWarning};
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}, {"details", capped(subjects)}};
  finding.subjects = std::move(subjects);
  return finding;
}

std::optional<std::string> opened_adapter_file(const Checkpoint& checkpoint) {
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced &&
        (file.path == "adapter_model.safetensors" || file.path == "adapter_model.bin"))
      return std::string(file.path);
  }
  return std::nullopt;
}

void report_base_weights(const Facts& facts, const AdapterConfig& config,
                         std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!is_of_lora(config) || !opened_adapter_file(c)) return;
  std::vector<std::string> weights;
  std::size_t matrices = 0;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    const auto layer = layer_name_of(fqn);
    if (is_adapter_name(fqn))
      ++matrices;
    else if (fqn.ends_with(".weight") && layer && layer->number >= 0 &&
             !is_saved_whole(config, fqn))
      weights.emplace_back(fqn);
  }
  if (weights.empty()) return;
  const bool is_one = weights.size() == 1;
  const std::string advice = config.saved.empty() && matrices != 0
                                 ? "Write the adapter without these tensors: `shardwright convert "
                                   "ADAPTER '*.lora_*' --to safetensors --out NEW`."
                                 : "Save it again with save_pretrained() of the PEFT model.";
  findings.push_back(adapter_contradiction(
      fmt::format(
          "{} of the base model {} stored in full in the adapter ({}), but modules_to_save lists "
          "no such module. Where LoRA does not change the module, PEFT overwrites the base's "
          "values with {} silently; elsewhere it skips {}; vLLM refuses the file. {}",
          plural(weights.size(), "weight"), is_one ? "is" : "are", short_list_text(weights),
          is_one ? "it" : "them", is_one ? "it" : "them", advice),
      weights));
}

void report_no_matrices(const Facts& facts, const AdapterConfig& config,
                        std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto file = opened_adapter_file(c);
  const bool may_have_none = config.trains_tokens && config.targets.empty();
  if (!is_of_lora(config) || !file || may_have_none) return;
  for (TensorId tensor : each_tensor(facts)) {
    if (is_adapter_name(c.fqn(tensor))) return;
  }
  findings.push_back(adapter_contradiction(
      fmt::format("{} has {} but no LoRA matrix, though adapter_config.json says that it is a LoRA "
                  "adapter (the first tensor is {}). PEFT creates the modules, finds no tensors "
                  "for them, and leaves "
                  "them untrained. The base model was saved instead of the adapter: call "
                  "save_pretrained() of the PEFT model, not of the model inside it.",
                  *file, plural(c.tensor_count(), "tensor"),
                  std::string(c.fqn(*c.tensors().begin()))),
      {*file}));
}

void report_unusable_config(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!opened_adapter_file(c)) return;
  if (config.peft_type.empty())
    findings.push_back(adapter_contradiction(
        "adapter_config.json has no peft_type: PEFT does not know the kind of adapter, and fails.",
        {kAdapterConfigFile}));
  if (config.peft_type == "LORA" && !config.unusable.empty())
    findings.push_back(adapter_contradiction(
        fmt::format("adapter_config.json says {}, from which PEFT cannot compute a scale: it fails "
                    "when it creates the modules. r is the number of rows of lora_A; lora_alpha is "
                    "in the training settings.",
                    short_list_text(config.unusable)),
        {kAdapterConfigFile}));
  if (config.peft_type == "LORA" && config.alpha == 0.0 && config.alpha_pattern.empty())
    findings.push_back(adapter_contradiction(
        "adapter_config.json says lora_alpha 0: PEFT multiplies the adapter by 0, so it has no "
        "effect. Take the right value from the training settings.",
        {kAdapterConfigFile}));
  report_two_block_settings(config, findings);
  const auto prompt = c.find("prompt_embeddings");
  if (!prompt || !config.virtual_tokens || c.shape(*prompt).size() != 2 ||
      c.shape(*prompt)[0] == *config.virtual_tokens)
    return;
  findings.push_back(adapter_contradiction(
      fmt::format("prompt_embeddings is {}, and adapter_config.json says {} virtual tokens: PEFT "
                  "creates that many rows and refuses the shape. The file or its config comes from "
                  "another training run.",
                  to_text(c.shape(*prompt)), *config.virtual_tokens),
      {"prompt_embeddings"}));
}

namespace {

// Weights of LoRA's targets that are not the base's: an adapter has been merged into them.
std::size_t count_changed_targets(const Facts& facts, const AdapterConfig& config) {
  const Checkpoint& c = facts.checkpoint;
  std::size_t changed = 0;
  if (facts.reference == nullptr || facts.depth == Depth::kMetadata) return changed;
  for (TensorId tensor : each_tensor(facts)) {
    std::string_view fqn = c.fqn(tensor);
    const auto other = facts.counterparts[index_of(tensor)];
    constexpr std::string_view kWeight = ".weight";
    if (!other || !fqn.ends_with(kWeight) || facts.equal_to_reference.contains(tensor)) continue;
    fqn.remove_suffix(kWeight.size());
    changed += std::any_of(config.targets.begin(), config.targets.end(),
                           [&](const auto& target) { return ends_in_module(fqn, target); })
                   ? 1
                   : 0;
  }
  return changed;
}

}  // namespace

void report_config_next_to_model(const Facts& facts, const AdapterConfig& config,
                                 std::vector<Finding>& findings) {
  const Directory& directory = *facts.checkpoint.directory();
  const auto is_there = [&](const char* path) {
    return directory.stat(path).kind == EntryKind::kFile;
  };
  const bool is_of_model = is_there("config.json") && !config.peft_type.empty();
  if (!is_of_model || opened_adapter_file(facts.checkpoint)) return;
  if (!is_there("adapter_model.safetensors") && !is_there("adapter_model.bin")) {
    findings.push_back(adapter_contradiction(
        "adapter_config.json is next to a full model without an adapter. transformers takes the "
        "folder for an adapter, looks for adapter_model.safetensors and fails. If the adapter is "
        "merged into the weights, delete adapter_config.json.",
        {kAdapterConfigFile}));
    return;
  }
  const std::size_t changed = count_changed_targets(facts, config);
  const std::string merged =
      changed == 0 ? std::string("If it is already merged into the weights, it is applied twice")
                   : fmt::format(
                         "{} of its target modules {} different from the base's: if this adapter "
                         "is already merged, it is applied twice",
                         plural(changed, "weight"), changed == 1 ? "is" : "are");
  findings.push_back(adapter_contradiction(
      fmt::format("An adapter is next to a full model. transformers and PEFT apply it to these "
                  "weights; vLLM and llama.cpp load the weights without it. {}: move the adapter "
                  "into a separate folder.",
                  merged),
      {kAdapterConfigFile}));
  if (changed == 0) findings.back().severity = Severity::kInfo;
}

void report_unread_matrices(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings) {
  if (config.peft_type != "LORA" || !opened_adapter_file(facts.checkpoint)) return;
  std::vector<std::string> unread;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = facts.checkpoint.fqn(tensor);
    if (fqn.find(".lora_") != fqn.npos && !lora_name(fqn)) unread.emplace_back(fqn);
  }
  if (unread.empty()) return;
  const bool is_one = unread.size() == 1;
  findings.push_back(adapter_contradiction(
      fmt::format("{} {} a name that neither PEFT nor vLLM reads ({}): both expect lora_A and "
                  "lora_B per module. PEFT skips {}, and vLLM fails. Trainers that keep all "
                  "experts in one tensor use such names.",
                  plural(unread.size(), "LoRA tensor"), is_one ? "has" : "have",
                  short_list_text(unread), is_one ? "it" : "them"),
      unread));
}

void report_adapter_name_in_keys(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::pair<TensorId, std::string>> names;
  std::vector<std::string> subjects;
  for (TensorId tensor : each_tensor(facts)) {
    constexpr std::string_view kWeight = ".weight";
    const std::string_view fqn = c.fqn(tensor);
    // A trainer's own file may keep the names of PEFT's running model.
    if (fqn.starts_with(kPeftRoot)) return;
    std::string name = adapter_file_name(fqn).substr(kPeftRoot.size());
    const std::string_view stem(name.data(), name.size() - (name.ends_with(kWeight) ? 7 : 0));
    if (!lora_name(fqn) || name == fqn || !name.ends_with(kWeight) || !fqn.starts_with(stem))
      return;
    subjects.emplace_back(fqn);
    names.emplace_back(tensor, std::move(name));
  }
  if (names.empty()) return;
  Finding finding = adapter_contradiction(
      fmt::format(
          "{} of {} contain the adapter's name ({}). PEFT and diffusers insert that name when they "
          "load, look for {}, and find none of these: the model runs as if there were no adapter.",
          human_count(names.size()), plural(c.tensor_count(), "name"), subjects.front(),
          names.front().second),
      subjects);
  plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

}  // namespace shw
