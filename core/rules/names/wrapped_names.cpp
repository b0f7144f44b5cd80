#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/config_prefix.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/config_names.h"
#include "core/facts/reference/model_config.h"
#include "core/model/state_names.h"
#include "core/rules/explained.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/names/plan_names.h"

namespace shw {
namespace {

using NewTensorNames = std::vector<std::pair<TensorId, std::string>>;

std::string_view first_part(std::string_view name) {
  return name.substr(0, name.find('.'));
}

// True if "module." is a wrapper's prefix: all names begin with it, or some do and their rest
// begins like the others.
bool has_module_wrapper_prefix(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  std::set<std::string_view> without;
  std::set<std::string> behind;
  for (TensorId tensor : tensors) {
    const Unwrapped bare = without_wrappers(c.fqn(tensor), true);
    const bool front = std::any_of(bare.marks.begin(), bare.marks.end(),
                                   [](const WrapperMark* mark) { return mark->front; });
    if (front)
      behind.emplace(first_part(bare.name));
    else
      without.insert(first_part(c.fqn(tensor)));
  }
  if (behind.empty() || without.empty()) return !behind.empty();
  return std::any_of(behind.begin(), behind.end(),
                     [&](const std::string& part) { return without.contains(part); });
}

bool has_file(const Facts& facts, const char* name) {
  const auto& directory = facts.checkpoint.directory();
  return directory != nullptr && directory->stat(name).kind == EntryKind::kFile;
}

// True for files that others load by the model's names: next to a model config, or weights alone. A
// torch.save file with other entries (the step, arguments, an optimizer) is loaded by the program
// that wrote it, and so is the folder of accelerate's save_state, so only a spec or a reference
// shows that other names are expected.
bool must_match_model_names(const Facts& facts) {
  if (has_file(facts, kConfigFile)) return true;
  if (!facts.states->empty()) return false;
  if (facts.spec != nullptr || facts.reference != nullptr) return true;
  const bool is_weights_alone =
      facts.checkpoint.format().rewrite != Rewrite::kNone || facts.checkpoint.objects().empty();
  return is_weights_alone && !has_file(facts, "random_states_0.pkl");
}

// Tensors whose names are in neither spec nor reference.
std::vector<TensorId> undecided_tensors(const Facts& facts) {
  std::vector<TensorId> tensors;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = facts.checkpoint.fqn(tensor);
    const auto other = facts.reference != nullptr ? facts.counterparts[index_of(tensor)]
                                                  : std::optional<TensorId>();
    const bool as_expected =
        (other && facts.reference->fqn(*other) == fqn) ||
        (facts.reference == nullptr && facts.spec != nullptr && facts.spec->find(fqn) != nullptr);
    if (!as_expected) tensors.push_back(tensor);
  }
  return tensors;
}

// Adds the finding. If other programs load the file by name, the cause ends with what their loaders
// do: `loaders`, or a default sentence.
void report_wrapped(const Facts& facts, const std::string& words, NewTensorNames names,
                    std::size_t all, std::vector<Finding>& findings,
                    const std::string& loaders = "") {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = std::string(kWrappedNames.id)};
  const bool for_others = must_match_model_names(facts);
  finding.severity = for_others ? Severity::kWarning : Severity::kInfo;
  std::vector<std::string> pairs;
  for (const auto& [tensor, name] : names) {
    finding.subjects.emplace_back(c.fqn(tensor));
    pairs.push_back(fmt::format("{}: {}", c.fqn(tensor), name));
  }
  finding.cause =
      fmt::format("{} of {} {}.", human_count(names.size()), plural(all, "name"), words);
  if (!for_others)
    finding.cause += " The trainer that wrote them may accept these names; other loaders do not.";
  else if (!loaders.empty())
    finding.cause += " " + loaders;
  else
    finding.cause +=
        fmt::format(" A loader that looks for {} does not find it and starts with random values.",
                    names.front().second);
  finding.evidence = {
      {"names", count_of(names.size())}, {"of", count_of(all)}, {"likely", capped(pairs)}};
  if (for_others) plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

// "model." if one dict of a file holds everything: {"model": state_dict}.
std::string common_container(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  if (!c.format().traits.has_one_piece_per_tensor) return "";
  for (const char* container : {"model.", "state_dict.", "model_state_dict.", "module."}) {
    const bool all = std::all_of(tensors.begin(), tensors.end(), [&](TensorId tensor) {
      return c.fqn(tensor).starts_with(container + std::string("module."));
    });
    if (all) return container;
  }
  return "";
}

// Reports names with wrapper marks; PEFT's are reported with its adapters.
bool report_wrapper_marks(const Facts& facts, const std::vector<TensorId>& tensors,
                          std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const std::string container = common_container(c, tensors);
  const bool with_front = !container.empty() || has_module_wrapper_prefix(c, tensors);
  std::map<std::string, std::size_t> marks;
  NewTensorNames names;
  for (TensorId tensor : tensors) {
    Unwrapped bare = without_wrappers(c.fqn(tensor).substr(container.size()), with_front);
    // What FSDP keeps of a whole module in one row is not a tensor of the model under any name.
    if (bare.marks.empty() || bare.name.ends_with("_flat_param")) continue;
    bare.name.insert(0, container);
    for (const WrapperMark* mark : bare.marks) ++marks[mark_text(*mark)];
    names.emplace_back(tensor, std::move(bare.name));
  }
  if (names.empty()) return false;
  std::vector<std::string> texts;
  for (const auto& [mark, count] : marks) texts.push_back(mark);
  const std::string words =
      fmt::format("{} {} in {}", names.size() == 1 ? "has" : "have", short_list_text(texts, 8),
                  names.size() == 1 ? "it" : "them");
  report_wrapped(facts, words, std::move(names), c.tensor_count(), findings);
  if (findings.back().severity == Severity::kInfo)
    findings.back().cause +=
        " For them, `shardwright convert CHECKPOINT --to safetensors --strip wrappers --out NEW` "
        "writes the model's own names.";
  return true;
}

// Reports adapter matrices next to plain weights: a loader of the model ignores them. Classes that
// have such matrices of their own (Phi-4 multimodal) are recognised by their names.
bool report_adapter_among_weights(const Facts& facts, const std::vector<TensorId>& tensors,
                                  std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!has_file(facts, kConfigFile)) return false;
  std::vector<std::string> adapters;
  bool has_base = false;
  for (TensorId tensor : tensors) {
    const std::string_view fqn = c.fqn(tensor);
    const std::size_t at = fqn.find(".lora_");
    if (at == std::string_view::npos || !is_adapter_name(fqn)) continue;
    adapters.emplace_back(fqn);
    // mlx-lm keeps the base's weight in a module of its own.
    for (const char* base : {".weight", ".linear.weight"})
      has_base = has_base || c.find(std::string(fqn.substr(0, at)) + base).has_value();
  }
  const auto names = names_of_config(c, facts.progress);
  if (!has_base || (names && names->others.empty())) return false;
  Finding finding{.rule = std::string(kWrappedNames.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} of an adapter ({}) {} among the weights of the model. A loader of the model skips them, "
      "so the adapter is not applied. Merge it before saving (merge_and_unload() of PEFT, "
      "mlx_lm.fuse), or save the adapter separately (`shardwright merge BASE ADAPTER` joins them).",
      plural(adapters.size(), "tensor"), short_list_text(adapters),
      adapters.size() == 1 ? "is" : "are");
  finding.evidence = {{"adapter_tensors", count_of(adapters.size())}};
  finding.subjects = std::move(adapters);
  findings.push_back(std::move(finding));
  return true;
}

// "model.language_model.norm.weight" for "model.language_model.language_model.norm.weight". Two
// equal parts in a row are a model's own except these, and so are numbers of nested lists; three
// are not a model's, but Megatron-FSDP writes module.module.module before the names of its
// optimizer states.
std::string without_repeated_parts(std::string_view name) {
  const bool is_state = parse_state_fqn(name).has_value();
  std::string out;
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) break;
    name.remove_prefix(dot + 1);
  }
  for (std::size_t first = 0; first < parts.size();) {
    std::size_t end = first + 1;
    while (end < parts.size() && parts[end] == parts[first]) ++end;
    const std::size_t count = end - first;
    // Models have other parts three times in a row: RF-DETR's encoder.encoder.encoder.
    constexpr auto kPartsOfWrappers = std::to_array<std::string_view>(
        {"module", "model", "language_model", "text_model", "base_model", "transformer",
         "vision_tower", "vision_model", "visual", "thinker", "_orig_mod"});
    const bool may_repeat =
        !is_one_of(parts[first], kPartsOfWrappers) || (is_state && parts[first] == "module");
    const bool is_repeated =
        (count > 2 && !may_repeat) || (count == 2 && parts[first] == "language_model");
    for (std::size_t i = 0; i < (is_repeated ? 1 : count); ++i) {
      if (!out.empty()) out += '.';
      out += parts[first];
    }
    first = end;
  }
  return out;
}

bool report_repeated_parts(const Facts& facts, const std::vector<TensorId>& tensors,
                           std::vector<Finding>& findings) {
  NewTensorNames names;
  for (TensorId tensor : tensors) {
    std::string name = without_repeated_parts(facts.checkpoint.fqn(tensor));
    if (name != facts.checkpoint.fqn(tensor)) names.emplace_back(tensor, std::move(name));
  }
  if (names.empty()) return false;
  const std::string words =
      fmt::format("{} one part several times in a row ({})", names.size() == 1 ? "has" : "have",
                  facts.checkpoint.fqn(names.front().first));
  report_wrapped(facts, words, std::move(names), facts.checkpoint.tensor_count(), findings);
  return true;
}

// Base weights of a PEFT-wrapped model. An adapter's own file has the same prefix.
bool report_unmerged(const Facts& facts, const std::vector<TensorId>& tensors,
                     std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::size_t rooted = 0, based = 0, adapters = 0;
  NewTensorNames names;
  for (TensorId tensor : tensors) {
    const std::string_view fqn = c.fqn(tensor);
    if (is_adapter_name(fqn)) {
      ++adapters;
      continue;
    }
    Unwrapped bare = without_wrappers(fqn, false);
    const bool has_root = bare.name.starts_with(kPeftRoot);
    if (has_root) bare.name.erase(0, kPeftRoot.size());
    constexpr std::string_view kTrained = "modules_to_save.default.";
    const std::size_t trained = bare.name.find(kTrained);
    if (trained != std::string::npos) bare.name.erase(trained, kTrained.size());
    const bool has_base = trained != std::string::npos ||
                          fqn.find(".base_layer.") != std::string_view::npos ||
                          fqn.find(".original_module.") != std::string_view::npos;
    rooted += has_root ? 1 : 0;
    based += has_base ? 1 : 0;
    if (has_root || has_base) names.emplace_back(tensor, std::move(bare.name));
  }
  if (names.empty()) return report_adapter_among_weights(facts, tensors, findings);
  std::vector<std::string> where;
  if (rooted != 0) where.push_back(fmt::format("`{}` before {}", kPeftRoot, human_count(rooted)));
  if (based != 0)
    where.push_back(fmt::format("`.base_layer.` or `.modules_to_save.` in {}", human_count(based)));
  std::string words =
      fmt::format("{} of an unmerged PEFT model: {}", names.size() == 1 ? "is that" : "are those",
                  short_list_text(where));
  if (adapters == 0) {
    report_wrapped(facts, words, std::move(names), c.tensor_count(), findings);
    return true;
  }
  words += fmt::format(", with {} of an adapter next to them", plural(adapters, "tensor"));
  report_wrapped(facts, words, std::move(names), c.tensor_count(), findings);
  Finding& finding = findings.back();
  finding.diagnoses.clear();
  finding.remedy.reset();
  finding.cause +=
      " Call merge_and_unload() on the model and save it again, so that the adapter is merged into "
      "the weights.";
  finding.evidence.emplace_back("adapter_tensors", count_of(adapters));
  return true;
}

// True if the class in config.json saves all these names, whatever other classes of its model save.
bool are_names_of_config_class(const Facts& facts) {
  const auto names = names_of_config(facts.checkpoint, facts.progress);
  return names && names->others.empty() && names->are_spelled_as_saved;
}

bool report_config_prefix(const Facts& facts, const std::vector<TensorId>& tensors,
                          std::vector<Finding>& findings) {
  auto prefix = wrong_config_prefix(facts.checkpoint, facts.progress);
  if (!prefix || prefix->names.empty()) return false;
  // This is the key of the state dict, in a format that keeps nested ones.
  if (!facts.checkpoint.format().traits.has_one_piece_per_tensor &&
      prefix->found == "model." + prefix->expected)
    return false;
  const std::unordered_set<TensorId> undecided(tensors.begin(), tensors.end());
  std::erase_if(prefix->names, [&](const auto& one) { return !undecided.contains(one.first); });
  if (prefix->names.empty() || are_names_of_config_class(facts)) return false;
  std::string words =
      fmt::format("{} not as config.json's {} has them: ", prefix->names.size() == 1 ? "is" : "are",
                  prefix->model_type);
  const bool is_lost = prefix->found.empty();
  if (is_lost)
    words +=
        fmt::format("they lack `{}`, and the head next to them shows that this is the full model",
                    prefix->expected);
  else
    words += prefix->expected.empty() ? fmt::format("`{}` is put before them", prefix->found)
                                      : fmt::format("its layers are under `{}`, here under `{}`",
                                                    prefix->expected, prefix->found);
  std::string loaders;
  if (is_lost)
    loaders = fmt::format(
        "transformers adds the prefix by itself. vLLM, SGLang and llama.cpp's converter look for "
        "{} and fail.",
        prefix->names.front().second);
  report_wrapped(facts, words, std::move(prefix->names), facts.checkpoint.tensor_count(), findings,
                 loaders);
  return true;
}

// Reports a part of the class in config.json whose names lack the part's own name.
bool report_lost_part(const Facts& facts, const std::vector<TensorId>& tensors,
                      std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (c.directory() == nullptr || tensors.size() != c.tensor_count()) return false;
  const auto config = read_model_config(*c.directory());
  const auto lost = config && *config ? lost_part(c, **config, facts.progress) : std::nullopt;
  if (!lost) return false;
  NewTensorNames names;
  for (TensorId tensor : lost->tensors)
    names.emplace_back(tensor, lost->prefix + std::string(c.fqn(tensor)));
  const std::string words =
      fmt::format("{} `{}`, the part of {} that they are of", names.size() == 1 ? "lacks" : "lack",
                  lost->prefix, lost->architecture);
  report_wrapped(facts, words, std::move(names), c.tensor_count(), findings);
  return true;
}

// timm's architecture in config.json if a trainer's attribute comes before all names. No model of
// timm 1.0.31 has one of these prefixes.
std::string timm_model_after_prefix(const Facts& facts, std::string_view prefix) {
  constexpr auto kAttributes =
      std::to_array<std::string_view>({"model.", "net.", "network.", "backbone."});
  if (std::find(kAttributes.begin(), kAttributes.end(), prefix) == kAttributes.end()) return "";
  const auto directory = facts.checkpoint.directory();
  return directory == nullptr ? "" : timm_architecture(*directory);
}

// Reports a common prefix such as "policy." before "model.layers..." and "lm_head.weight", which
// show the model's own prefix.
bool report_common_first_part(const Facts& facts, const std::vector<TensorId>& tensors,
                              std::vector<Finding>& findings) {
  constexpr auto kBodies = std::to_array<std::string_view>(
      {"model", "transformer", "gpt_neox", "backbone", "bert", "roberta", "encoder", "decoder"});
  constexpr auto kHeads =
      std::to_array<std::string_view>({"lm_head", "embed_out", "classifier", "score", "cls"});
  const Checkpoint& c = facts.checkpoint;
  if (!c.format().traits.has_one_piece_per_tensor || tensors.size() != c.tensor_count() ||
      tensors.empty())
    return false;
  const std::string first = std::string(first_part(c.fqn(tensors.front()))) + ".";
  bool has_body = false, has_head = false;
  NewTensorNames names;
  for (TensorId tensor : tensors) {
    std::string_view fqn = c.fqn(tensor);
    if (!fqn.starts_with(first)) return false;
    fqn.remove_prefix(first.size());
    const std::string_view second = first_part(fqn);
    has_body = has_body || std::find(kBodies.begin(), kBodies.end(), second) != kBodies.end();
    has_head = has_head || std::find(kHeads.begin(), kHeads.end(), second) != kHeads.end();
    names.emplace_back(tensor, std::string(fqn));
  }
  // The config of one part of a composed model, such as thinker_config of Qwen's Omni models.
  if (const auto config = c.directory() ? read_model_config(*c.directory()) : std::nullopt;
      config && *config &&
      (*config)->find(first.substr(0, first.size() - 1) + "_config") != nullptr)
    return false;
  const std::string timm = timm_model_after_prefix(facts, first);
  const bool is_whole = has_body && has_head && first != "model.";
  if (timm.empty() && (!is_whole || are_names_of_config_class(facts))) return false;
  const std::string words = fmt::format(
      "{} with `{}`, before {}", names.size() == 1 ? "begins" : "begin", first,
      timm.empty() ? "the body and the head of one model" : "the names of timm's " + timm);
  report_wrapped(facts, words, std::move(names), c.tensor_count(), findings);
  // Without a config the loader is unknown.
  if (!has_file(facts, kConfigFile)) findings.back().severity = Severity::kInfo;
  return true;
}

// Reports a part of the model that the file has twice, once behind "model.". Files of a training
// framework may hold two names of one module, so a config.json has to be next to the weights.
bool report_parts_saved_twice(const Facts& facts, const std::vector<TensorId>& tensors,
                              std::vector<Finding>& findings) {
  constexpr std::string_view kPrefix = "model.";
  constexpr std::size_t kFewest = 8;
  const Checkpoint& c = facts.checkpoint;
  if (!has_file(facts, kConfigFile)) return false;
  std::vector<std::string> doubled;
  std::set<std::string> parts;
  for (TensorId tensor : tensors) {
    const std::string_view fqn = c.fqn(tensor);
    const auto other = c.find(std::string(kPrefix) + std::string(fqn));
    if (!other || c.dtype(*other) != c.dtype(tensor) ||
        !std::ranges::equal(c.shape(*other), c.shape(tensor)))
      continue;
    doubled.emplace_back(fqn);
    parts.emplace(std::string(first_part(fqn)) + ".");
  }
  const auto is_of_part = [&](TensorId tensor) {
    return parts.contains(std::string(first_part(c.fqn(tensor))) + ".");
  };
  const auto all = std::count_if(tensors.begin(), tensors.end(), is_of_part);
  if (doubled.size() < kFewest || doubled.size() * 2 < static_cast<std::size_t>(all)) return false;
  Finding finding{.rule = std::string(kWrappedNames.id), .severity = Severity::kWarning};
  finding.cause = fmt::format(
      "{} are in the checkpoint twice, as {} and with the prefix `{}`. A loader reads the set "
      "whose names its model has and ignores the other. If the two come from different saves, "
      "which one is used depends on the loader.",
      plural(doubled.size(), "tensor"),
      short_list_text(std::vector<std::string>(parts.begin(), parts.end())), kPrefix);
  finding.evidence = {{"names", count_of(doubled.size())}, {"of", count_of(tensors.size())}};
  finding.subjects = std::move(doubled);
  findings.push_back(std::move(finding));
  return true;
}

void find_wrapped_names(const Facts& facts, std::vector<Finding>& findings) {
  if (!explained_by(findings, kRenamedTensors.id).empty()) return;
  const std::vector<TensorId> tensors = undecided_tensors(facts);
  if (tensors.empty() || has_file(facts, "adapter_config.json")) return;
  report_unmerged(facts, tensors, findings) || report_wrapper_marks(facts, tensors, findings) ||
      report_repeated_parts(facts, tensors, findings) ||
      report_config_prefix(facts, tensors, findings) ||
      report_lost_part(facts, tensors, findings) ||
      report_common_first_part(facts, tensors, findings) ||
      report_parts_saved_twice(facts, tensors, findings);
}

}  // namespace

const Rule kWrappedNames = {
    .id = "wrapped-names",
    .depth = Depth::kMetadata,
    .title = "Tensor names contain a wrapper's prefix",
    .teaches =
        "torch.compile, DDP, FSDP, activation checkpointing and PEFT wrap a model, and each adds "
        "its own prefix to the tensor names. A state dict taken from the wrapper keeps these "
        "prefixes. Loaders of the plain model then find none of the names: most start with random "
        "values and print a list of missing keys. The tensors are complete; the repair removes the "
        "prefixes. Base weights of a PEFT model that still has its adapter are not renamed: merge "
        "the adapter first.",
    .lesson = {.drawing = R"(
  saved                                   the model's own name
  _orig_mod.lm_head.weight                lm_head.weight
  module.layers.0.mlp.up.weight           layers.0.mlp.up.weight
  base_model.model.q_proj.base_layer.weight   q_proj.weight  and its adapter
)",
               .remedy = "`shardwright repair CHECKPOINT` removes the prefix. For the next save "
                         "use `model._orig_mod.state_dict()`, or unwrap the model first.",
               .link = "https://github.com/karpathy/nanoGPT/issues/325"},
    .words = {.text = "under names with a wrapper's prefix"},
    .run = find_wrapped_names,
};

}  // namespace shw
