// Contradictions between adapter_config.json and adapter tensor names.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/adapter_config.h"
#include "core/facts/names/adapter_prefix.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/formats/single_file_directory.h"
#include "core/rules/names/adapter_layers.h"
#include "core/rules/names/adapter_roots.h"
#include "core/rules/names/adapter_weights.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/plan_names.h"
#include "core/rules/names/tuned_parameters.h"

namespace shw {
namespace {

struct AdapterModule {
  std::map<LoraPart, TensorId> parts;
};
struct Adapter {
  AdapterConfig config;
  std::map<std::string, AdapterModule> modules;
};

Finding adapter_finding(std::string cause, std::vector<std::string> subjects,
                        std::vector<std::string> details) {
  Finding finding{.rule = std::string(kAdapterContradicts.id), .severity = Severity::kWarning};
  finding.cause = std::move(cause);
  finding.evidence = {{"count", count_of(subjects.size())}, {"details", capped(details)}};
  finding.subjects = std::move(subjects);
  return finding;
}

// True for all but the last of several target_parameters of one module: PEFT wraps the module once
// for each, which adds "base_layer." before the matrices.
bool is_wrapped_twice(const Adapter& adapter, std::string_view fqn) {
  return adapter.config.wraps_parameters && fqn.find(".base_layer.lora_") != std::string_view::npos;
}

// "lack `model.`, which LlamaModel has" and the like, for names behind "base_model.model.".
std::string prefix_mistake_text(const AdapterPrefix& prefix) {
  if (prefix.found.empty() && prefix.expected.empty())
    return fmt::format(
        "lack the prefix under which {} has its layers, such as `model.` or `transformer.`",
        prefix.of);
  if (prefix.found.empty())
    return fmt::format("lack `{}`, in which {} has its layers", prefix.expected, prefix.of);
  if (prefix.expected.empty())
    return fmt::format("have the prefix `{}`, which {} does not have", prefix.found, prefix.of);
  return fmt::format("have the prefix `{}`, where {} has `{}`", prefix.found, prefix.of,
                     prefix.expected);
}

// Reports adapter names with a wrong prefix, which PEFT's loader ignores. They are renamed only if
// the right prefix is known.
void report_prefix(const Facts& facts, const AdapterPrefix& prefix,
                   std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const bool is_known = !prefix.found.empty() || !prefix.expected.empty();
  std::vector<std::pair<TensorId, std::string>> names;
  std::vector<std::string> subjects, details;
  for (TensorId tensor : each_tensor(facts)) {
    if (!lora_name(c.fqn(tensor))) continue;
    const std::string old_one = adapter_file_name(c.fqn(tensor));
    std::string name = std::string(kPeftRoot) + prefix.expected +
                       old_one.substr(kPeftRoot.size() + prefix.found.size());
    subjects.emplace_back(c.fqn(tensor));
    if (is_known) details.push_back(fmt::format("{}: {}", c.fqn(tensor), name));
    names.emplace_back(tensor, std::move(name));
  }
  const std::string cause = fmt::format(
      "{} of {} {} (for example {}). PEFT finds no module for them and skips them with a warning: "
      "the base model runs as if there were no adapter.",
      human_count(names.size()), plural(c.tensor_count(), "name"), prefix_mistake_text(prefix),
      subjects.front());
  Finding finding = adapter_finding(cause, std::move(subjects), std::move(details));
  if (is_known) plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

// PEFT prefixes all names with "base_model.model." and removes the adapter's name.
void report_names_not_peft_style(const Facts& facts, const Adapter& adapter,
                                 std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::pair<TensorId, std::string>> names;
  std::vector<std::string> subjects, details;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    const bool is_doubled = fqn.starts_with(std::string(kPeftRoot) + std::string(kPeftRoot));
    if (!is_adapter_name(fqn) && !is_doubled &&
        fqn.find(".modules_to_save.") == std::string_view::npos)
      continue;
    // Prompt and prefix tensors have names of their own.
    if (!lora_name(fqn) && !is_doubled) continue;
    if (is_wrapped_twice(adapter, fqn)) continue;
    std::string name = adapter_file_name(fqn);
    if (name == fqn) continue;
    subjects.emplace_back(fqn);
    details.push_back(fmt::format("{}: {}", fqn, name));
    names.emplace_back(tensor, std::move(name));
  }
  if (names.empty()) return;
  const std::string cause = fmt::format(
      "{} of {} {} not in the form that PEFT's loader expects (for example {}). It loads names "
      "that begin with `base_model.model.` exactly once and do not contain the adapter's name. All "
      "others are skipped, and their modules keep their initial values.",
      human_count(names.size()), plural(c.tensor_count(), "name"), names.size() == 1 ? "is" : "are",
      subjects.front());
  Finding finding = adapter_finding(cause, std::move(subjects), std::move(details));
  plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

// Rows of A and columns of B equal the LoRA rank.
void report_ranks(const Facts& facts, const Adapter& adapter, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (adapter.config.has_other_rows || adapter.config.peft_type != "LORA") return;
  std::vector<std::string> subjects, details;
  for (const auto& [module, one] : adapter.modules) {
    const auto said = rank_of_module(adapter.config, module);
    for (const auto& [part, tensor] : one.parts) {
      const ExtentsView shape = c.shape(tensor);
      if (part == LoraPart::kMagnitude || shape.size() < 2 || volume(shape) == 0) continue;
      const std::size_t axis = part == LoraPart::kA || part == LoraPart::kEmbeddingA ? 0 : 1;
      if (!said || shape[axis] == *said) continue;
      subjects.emplace_back(c.fqn(tensor));
      details.push_back(fmt::format("{} {}, r {}", c.fqn(tensor), to_text(shape), *said));
    }
  }
  if (subjects.empty()) return;
  const std::string cause = fmt::format(
      "{} of the adapter {} a LoRA rank that differs from adapter_config.json ({}). PEFT builds "
      "the modules from the config and then refuses the shapes.",
      plural(subjects.size(), "tensor"), subjects.size() == 1 ? "has" : "have", details.front());
  findings.push_back(adapter_finding(cause, std::move(subjects), details));
}

// Single matrices are reported as incomplete pairs (half_adapters.h).
void report_modules_with_one_matrix(const Facts& facts, const Adapter& adapter,
                                    std::vector<Finding>& findings) {
  if (adapter.config.peft_type != "LORA") return;
  std::vector<std::string> halves;
  for (const auto& [module, one] : adapter.modules) {
    const bool a = one.parts.contains(LoraPart::kA) || one.parts.contains(LoraPart::kEmbeddingA);
    const bool b = one.parts.contains(LoraPart::kB) || one.parts.contains(LoraPart::kEmbeddingB);
    if (a != b) halves.emplace_back(facts.checkpoint.fqn(one.parts.begin()->second));
  }
  const std::size_t whole = adapter.modules.size() - halves.size();
  if (halves.size() <= whole) return;
  findings.push_back(adapter_finding(
      fmt::format(
          "{} of {} of the adapter have only one of the two LoRA matrices ({}). PEFT initializes "
          "the missing one from scratch, so the training is lost without an error.",
          human_count(halves.size()), plural(adapter.modules.size(), "module"),
          short_list_text(halves)),
      halves, halves));
}

// A model with one of query, key and value projections has all three.
bool is_missing_attention_target(const Adapter& adapter, const std::string& target) {
  if (adapter.config.excludes_modules) return false;
  constexpr auto kAttention = std::to_array<std::string_view>({"q_proj", "k_proj", "v_proj"});
  if (std::find(kAttention.begin(), kAttention.end(), target) == kAttention.end()) return false;
  return std::any_of(adapter.modules.begin(), adapter.modules.end(), [&](const auto& module) {
    return std::any_of(kAttention.begin(), kAttention.end(),
                       [&](std::string_view other) { return ends_in_module(module.first, other); });
  });
}

// The modules that transformers ties to each other.
bool is_table_or_head(std::string_view module) {
  constexpr auto kTied =
      std::to_array<std::string_view>({"embed_tokens", "lm_head", "shared", "wte",
                                       "word_embeddings", "decoder", "embed_out", "proj_out"});
  return std::any_of(kTied.begin(), kTied.end(),
                     [&](std::string_view one) { return ends_in_module(module, one); });
}

// True if PEFT trains embedding and output layer together, as for TRAINABLE_TOKENS.
bool ties_modules(const AdapterConfig& config) {
  return config.ties_weights || config.peft_type == "TRAINABLE_TOKENS";
}

void report_targets(const Facts& facts, const Adapter& adapter, std::vector<Finding>& findings) {
  std::vector<std::string> without, sure, strangers;
  for (const std::string& target : adapter.config.targets) {
    const bool is_met =
        std::any_of(adapter.modules.begin(), adapter.modules.end(),
                    [&](const auto& module) { return ends_in_module(module.first, target); });
    if (is_met || target == "all-linear") continue;
    (is_missing_attention_target(adapter, target) ? sure : without).push_back(target);
  }
  if (!adapter.config.targets.empty() && !adapter.config.has_other_rows) {
    for (const auto& [module, one] : adapter.modules) {
      const bool is_target = std::any_of(
          adapter.config.targets.begin(), adapter.config.targets.end(),
          [&module = module](const auto& target) { return ends_in_module(module, target); });
      const bool is_tied = ties_modules(adapter.config) && is_table_or_head(module);
      if (!is_target && !is_tied)
        strangers.emplace_back(facts.checkpoint.fqn(one.parts.begin()->second));
    }
  }
  const bool none = !adapter.config.targets.empty() &&
                    sure.size() + without.size() == adapter.config.targets.size();
  if (none) sure.insert(sure.end(), without.begin(), without.end());
  if (!sure.empty())
    findings.push_back(adapter_finding(
        fmt::format("adapter_config.json's target_modules lists {}, for which the adapter holds no "
                    "tensor. PEFT creates these modules untrained.",
                    short_list_text(sure)),
        {kAdapterConfigFile}, sure));
  else if (!without.empty()) {
    findings.push_back(adapter_finding(
        fmt::format("adapter_config.json's target_modules lists {}, for which the adapter holds no "
                    "tensor. This is fine if the base model has no such module.",
                    short_list_text(without)),
        {kAdapterConfigFile}, without));
    findings.back().severity = Severity::kInfo;
  }
  if (strangers.empty()) return;
  const std::string words = fmt::format(
      "{} of the adapter {} to no module that adapter_config.json's target_modules lists ({}). "
      "PEFT does not create these modules, so their tensors are skipped.",
      plural(strangers.size(), "module"), strangers.size() == 1 ? "belongs" : "belong",
      short_list_text(adapter.config.targets, 8));
  findings.push_back(adapter_finding(words, strangers, strangers));
}

void report_layers(const Adapter& adapter, std::vector<Finding>& findings) {
  if (adapter.config.is_limited_to_layers || adapter.config.has_other_rows ||
      adapter.config.excludes_modules || adapter.config.targets.empty())
    return;
  std::vector<std::string_view> modules;
  for (const auto& [module, one] : adapter.modules) modules.push_back(module);
  const std::vector<std::string> absent = modules_missing_in_layers(modules);
  if (absent.empty()) return;
  findings.push_back(adapter_finding(
      fmt::format("The adapter holds no tensor of {} ({}), though other layers have {}. PEFT "
                  "creates {} in every layer and leaves {} untrained.",
                  plural(absent.size(), "module"), short_list_text(absent),
                  absent.size() == 1 ? "it" : "them", absent.size() == 1 ? "it" : "them",
                  absent.size() == 1 ? "this one" : "these"),
      {kAdapterConfigFile}, absent));
}

// layers_to_transform limits the layers in which PEFT adds modules.
void report_listed_layers(const Facts& facts, const Adapter& adapter,
                          std::vector<Finding>& findings) {
  const std::vector<std::int64_t>& listed = adapter.config.layers;
  if (listed.empty() || adapter.config.targets.empty() || adapter.config.has_other_rows) return;
  std::set<std::int64_t> there;
  std::vector<std::string> strangers, absent;
  for (const auto& [module, one] : adapter.modules) {
    const auto layer = layer_of_module(adapter.config, module);
    if (layer) there.insert(*layer);
    if (!layer || std::find(listed.begin(), listed.end(), *layer) == listed.end())
      strangers.emplace_back(facts.checkpoint.fqn(one.parts.begin()->second));
  }
  for (const std::int64_t layer : listed) {
    if (!there.contains(layer)) absent.push_back(std::to_string(layer));
  }
  if (!strangers.empty())
    findings.push_back(adapter_finding(
        fmt::format(
            "{} of the adapter {} of layers that adapter_config.json's layers_to_transform does "
            "not list ({}). PEFT does not create these modules, so their tensors are skipped.",
            plural(strangers.size(), "module"), strangers.size() == 1 ? "is" : "are",
            short_list_text(strangers)),
        strangers, strangers));
  if (!absent.empty() && !there.empty())
    findings.push_back(adapter_finding(
        fmt::format("adapter_config.json's layers_to_transform lists {} {}, for which the adapter "
                    "holds no tensor. PEFT creates their modules untrained.",
                    absent.size() == 1 ? "layer" : "layers", short_list_text(absent, 8)),
        {kAdapterConfigFile}, absent));
}

// PEFT finds a LoRA adapter by its config.
void report_no_config(const Facts& facts, std::vector<Finding>& findings) {
  const auto file = opened_adapter_file(facts.checkpoint);
  if (!file) return;
  findings.push_back(adapter_finding(
      fmt::format("{} is a PEFT adapter, but the folder has no adapter_config.json: its rank, "
                  "scale and base model are unknown, and PEFT and vLLM refuse it.",
                  *file),
      {*file}, {}));
}

void report_saved_modules(const Facts& facts, const Adapter& adapter,
                          std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<std::string> missing;
  for (const std::string& saved : adapter.config.saved) {
    bool found = false;
    for (TensorId tensor : each_tensor(facts)) {
      const std::string name = std::string(c.fqn(tensor)) + ".";
      found = found || (!is_adapter_name(name) && name.find(saved + ".") != std::string::npos);
    }
    if (!found) missing.push_back(saved);
  }
  // PEFT lists both names of a classification head, and a model has one of them.
  constexpr auto kHeads = std::to_array<std::string_view>({"classifier", "score"});
  const auto is_head = [&](const std::string& name) {
    return std::find(kHeads.begin(), kHeads.end(), name) != kHeads.end();
  };
  const auto heads =
      std::count_if(adapter.config.saved.begin(), adapter.config.saved.end(), is_head);
  if (heads == 2 && std::count_if(missing.begin(), missing.end(), is_head) == 1)
    std::erase_if(missing, is_head);
  if (missing.empty()) return;
  findings.push_back(adapter_finding(
      fmt::format("adapter_config.json's modules_to_save lists {}, but no tensor of {} is there: "
                  "the training of {} is lost, and PEFT keeps the base model's values.",
                  short_list_text(missing), missing.size() == 1 ? "it" : "them",
                  missing.size() == 1 ? "it" : "them"),
      {kAdapterConfigFile}, missing));
}

void report_magnitudes(const Facts& facts, const Adapter& adapter, std::vector<Finding>& findings) {
  std::vector<std::string> without, with;
  for (const auto& [module, one] : adapter.modules) {
    const bool has = one.parts.contains(LoraPart::kMagnitude);
    (has ? with : without).emplace_back(facts.checkpoint.fqn(one.parts.begin()->second));
  }
  const bool lacks = adapter.config.use_dora || with.size() > without.size();
  if (with.empty() && !adapter.config.use_dora) return;
  if (lacks && !without.empty())
    findings.push_back(adapter_finding(
        fmt::format("{} of {} lack DoRA's magnitude vector (lora_magnitude_vector): PEFT "
                    "initializes it from the base weights.",
                    human_count(without.size()), plural(adapter.modules.size(), "module")),
        without, without));
  if (!with.empty() && !adapter.config.use_dora)
    findings.push_back(adapter_finding(
        fmt::format("{} have DoRA's magnitude vector (lora_magnitude_vector), but "
                    "adapter_config.json does not set use_dora: PEFT skips the vectors, and the "
                    "adapter does not compute what it was trained for.",
                    plural(with.size(), "module")),
        with, with));
}

// Reports adapters of kinds whose tensors have other names than LoRA's.
void report_other_adapter_type(const Adapter& adapter, std::vector<Finding>& findings) {
  constexpr auto kTypes = std::to_array<std::string_view>(
      {"IA3", "LOHA", "LOKR", "OFT", "BOFT", "HRA", "LN_TUNING", "FOURIERFT", "PREFIX_TUNING",
       "PROMPT_TUNING", "P_TUNING", "ADAPTION_PROMPT"});
  const std::string& said = adapter.config.peft_type;
  if (std::find(kTypes.begin(), kTypes.end(), said) == kTypes.end()) return;
  findings.push_back(adapter_finding(
      fmt::format("adapter_config.json says peft_type {}, but {} {} LoRA's matrices. PEFT creates "
                  "modules of the declared type and skips every tensor.",
                  said, plural(adapter.modules.size(), "module"),
                  adapter.modules.size() == 1 ? "has" : "have"),
      {kAdapterConfigFile}, {}));
}

// Modules that an adapter other than LoRA lacks, or has without a reason.
void report_tuned_modules(const Facts& facts, const AdapterConfig& config,
                          std::vector<Finding>& findings) {
  if (!opened_adapter_file(facts.checkpoint) || config.peft_type == "ADALORA") return;
  Adapter adapter{config, {}};
  for (TensorId tensor : each_tensor(facts)) {
    // Any tensor of a module counts for the module.
    if (auto module = tuned_module(config, facts.checkpoint.fqn(tensor)))
      adapter.modules[*module].parts.emplace(LoraPart::kA, tensor);
  }
  if (adapter.modules.empty()) return;
  report_targets(facts, adapter, findings);
  report_layers(adapter, findings);
  report_listed_layers(facts, adapter, findings);
}

void find_adapter_names(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (c.directory() == nullptr || c.tensor_count() == 0) return;
  auto config = read_adapter_config(*c.directory());
  if (!config) {
    findings.push_back(adapter_finding(
        fmt::format("adapter_config.json {}: no loader can build the adapter's modules without it.",
                    config.error().message),
        {kAdapterConfigFile}, {}));
    return;
  }
  if (*config) {
    report_no_matrices(facts, **config, findings);
    report_unusable_config(facts, **config, findings);
    report_lost_parameters(facts, **config, findings);
    report_mismatched_sizes(facts, **config, findings);
    report_tuned_modules(facts, **config, findings);
    report_wrong_roots(facts, **config, findings);
  }
  if (*config && !is_adapter(c)) report_config_next_to_model(facts, **config, findings);
  if (!is_adapter(c)) return;
  if (!*config) report_adapter_name_in_keys(facts, findings);
  // For a checkpoint opened as a single file, the config next to it was not searched.
  if (!*config && is_single_file_directory(*c.directory())) return;
  if (!*config) return report_no_config(facts, findings);
  Adapter adapter{std::move(**config), {}};
  for (TensorId tensor : each_tensor(facts)) {
    if (auto name = lora_name(c.fqn(tensor)))
      adapter.modules[name->module].parts.emplace(name->part, tensor);
  }
  if (const auto prefix = prefix_from_config(modules_in_adapter(c), adapter.config))
    report_prefix(facts, *prefix, findings);
  else
    report_names_not_peft_style(facts, adapter, findings);
  report_saved_modules(facts, adapter, findings);
  report_base_weights(facts, adapter.config, findings);
  report_unread_matrices(facts, adapter.config, findings);
  if (adapter.modules.empty()) return;
  report_other_adapter_type(adapter, findings);
  report_modules_with_one_matrix(facts, adapter, findings);
  report_ranks(facts, adapter, findings);
  report_targets(facts, adapter, findings);
  report_magnitudes(facts, adapter, findings);
  report_layers(adapter, findings);
  report_listed_layers(facts, adapter, findings);
}

}  // namespace

const Rule kAdapterContradicts = {
    .id = "adapter-contradicts",
    .depth = Depth::kMetadata,
    .title = "An adapter does not match its adapter_config.json",
    .teaches =
        "PEFT builds an adapter's modules from adapter_config.json: which modules "
        "(target_modules), with which rank (r, rank_pattern), and which modules are saved in full "
        "(modules_to_save). Then it loads the tensors by name. A tensor without a module is "
        "skipped with a line in the log, and a module without a tensor stays untrained. Full "
        "weights of layers that no list names overwrite the base's weights. Names must begin with "
        "`base_model.model.` exactly once and must not contain the adapter's name (`default`). The "
        "repair corrects names; correct a wrong rank or list in the config yourself, from the "
        "training settings.",
    .lesson = {.drawing = R"(
  adapter_config.json        adapter_model.safetensors
  r: 8                       q_proj.lora_A.weight  [8, 4096]
                             v_proj.lora_A.weight  [4, 4096]    another rank
  target_modules: q, k, v    no tensor of k_proj                untrained
)",
               .remedy = "Save the adapter again with `model.save_pretrained()`. If only names are "
                         "wrong, `shardwright repair CHECKPOINT` renames the tensors."},
    .words = {.text = "does not load as it was trained"},
    .run = find_adapter_names,
};

}  // namespace shw
