// Hypotheses from missing and unexpected names.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/explain/name_clues.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kSpec = "--spec SPEC.json";

// A name part that a program inserts.
struct Wrapper {
  std::string_view part, who;
  bool anywhere = false;  // false: only at the begin
  double weight = 0.8;    // likelihood if only one list is known
};
constexpr std::array<Wrapper, 12> kWrappers = {{
    {"_fsdp_wrapped_module.", "FSDP1", true},
    {"_fpw_module.", "fairscale's FSDP", true},
    {"_checkpoint_wrapped_module.", "activation checkpointing", true},
    {"_orig_mod.", "torch.compile", true},
    {"_forward_module.", "Lightning", true},
    {".base_layer.", "PEFT", true},
    {"base_model.model.", "PEFT", false},
    {"module.", "DistributedDataParallel or DeepSpeed", false, 0.75},
    {"state_dict.", "a state dict saved one level deeper", false},
    {"model_state.", "a state dict saved one level deeper", false},
    // These usually belong to the model itself, so they count only if the other list lacks them.
    {"model.", "a state dict saved one level deeper, or another class of the model", false, 0},
    {"transformer.", "another class of the model", false, 0},
}};

// The name without wrappers.
std::string name_without_wrapper(std::string name) {
  for (bool again = true; again;) {
    again = false;
    for (const Wrapper& wrapper : kWrappers) {
      std::size_t at = wrapper.anywhere ? name.find(wrapper.part)
                                        : (name.starts_with(wrapper.part) ? 0 : name.npos);
      if (at == name.npos) continue;
      name.replace(at, wrapper.part.size(), wrapper.part.starts_with(".") ? "." : "");
      again = true;
    }
  }
  return name;
}

struct Pairs {
  std::size_t count = 0;
  std::string saved, asked;  // an example of each
};

// Pairs of missing and unexpected names that differ only in wrappers.
Pairs pairs_by_wrapper(const KeyLists& keys) {
  std::map<std::string, std::string> saved;
  for (const std::string& name : keys.unexpected) saved.emplace(name_without_wrapper(name), name);
  Pairs pairs;
  for (const std::string& name : keys.missing) {
    auto found = saved.find(name_without_wrapper(name));
    if (found == saved.end()) continue;
    if (pairs.count++ == 0) pairs = {1, found->second, name};
  }
  return pairs;
}

// Pairs where one name ends in "." and the other, all with the same prefix.
Pairs pairs_by_prefix(const std::vector<std::string>& longer,
                      const std::vector<std::string>& shorter, bool longer_is_saved) {
  std::set<std::string_view> known(shorter.begin(), shorter.end());
  std::map<std::string_view, Pairs> by_prefix;
  for (std::string_view name : longer) {
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
      auto found = known.find(name.substr(dot + 1));
      if (found == known.end()) continue;
      Pairs& pairs = by_prefix[name.substr(0, dot + 1)];
      if (pairs.count++ != 0) continue;
      pairs.saved = longer_is_saved ? name : *found;
      pairs.asked = longer_is_saved ? *found : name;
    }
  }
  Pairs best;
  for (auto& [prefix, pairs] : by_prefix) {
    if (pairs.count > best.count) best = pairs;
  }
  return best;
}

// Missing names that end in an unexpected one, all after the same number of letters: a loader that
// takes "module." off by its length also cuts names that do not have it.
struct TruncatedNames {
  std::size_t letters = 0;
  Pairs pairs = {};
};
TruncatedNames find_truncated_names(const KeyLists& keys) {
  constexpr std::size_t kMaxLetters = 16, kMinNames = 2;
  const std::set<std::string_view> saved(keys.unexpected.begin(), keys.unexpected.end());
  TruncatedNames best;
  for (std::size_t letters = 1; letters <= kMaxLetters; ++letters) {
    TruncatedNames one{letters};
    for (std::string_view name : keys.missing) {
      if (name.size() <= letters || name[letters - 1] == '.') continue;
      auto found = saved.find(name.substr(letters));
      if (found == saved.end()) continue;
      if (one.pairs.count++ == 0) one.pairs = {1, std::string(*found), std::string(name)};
    }
    if (one.pairs.count >= kMinNames && one.pairs.count > best.pairs.count) best = one;
  }
  return best;
}

void add_truncated_names_hypothesis(const KeyLists& keys, std::vector<Hypothesis>& all) {
  const TruncatedNames cut = find_truncated_names(keys);
  if (cut.letters == 0 || cut.pairs.count * 2 <= keys.unexpected.size()) return;
  Hypothesis one{"cut-names", &kMissingKey, FaultSide::kRequest, 0.95};
  one.title = "the loader cut letters off the checkpoint's names";
  one.text = fmt::format(
      "{} of {} unexpected names are missing names without their first {} letters: \"{}\" is "
      "\"{}\". A script cuts off a prefix such as \"module.\" by its length, but these names do "
      "not have it. The checkpoint is fine: load its names unchanged.",
      cut.pairs.count, keys.unexpected.size(), cut.letters, cut.pairs.saved, cut.pairs.asked);
  one.decide = "Look for a line such as name[7:] in the loading script.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("letters", static_cast<std::int64_t>(cut.letters));
  all.push_back(std::move(one));
}

// "epoch", "model" and "optimizer" among the unexpected names: the dict of a trainer was loaded in
// the place of the state dict in it.
void add_trainer_dict_hypothesis(const KeyLists& keys, std::vector<Hypothesis>& all) {
  constexpr std::array<std::string_view, 36> kParts = {"model",
                                                       "_model",
                                                       "model_key",
                                                       "previous_best",
                                                       "module",
                                                       "net",
                                                       "optim",
                                                       "cfg",
                                                       "state",
                                                       "hparams_name",
                                                       "pytorch-lightning_version",
                                                       "optimizer",
                                                       "epoch",
                                                       "state_dict",
                                                       "start_epoch",
                                                       "scheduler",
                                                       "model_state_dict",
                                                       "iteration",
                                                       "global_step",
                                                       "lr_scheduler",
                                                       "best_metric",
                                                       "args",
                                                       "optimizers",
                                                       "amp",
                                                       "hyper_parameters",
                                                       "ema",
                                                       "arch",
                                                       "version",
                                                       "amp_scaler",
                                                       "scaler",
                                                       "metric",
                                                       "loss",
                                                       "config",
                                                       "best_acc",
                                                       "rng_state",
                                                       "callbacks"};
  const auto count =
      std::count_if(keys.unexpected.begin(), keys.unexpected.end(), [&](const std::string& name) {
        return std::find(kParts.begin(), kParts.end(), name) != kParts.end();
      });
  if (count < 2 || static_cast<std::size_t>(count) * 2 <= keys.unexpected.size()) return;
  Hypothesis one{"whole-checkpoint", &kUnexpectedKey, FaultSide::kRequest, 0.97};
  one.title = "the whole checkpoint was loaded instead of the state dict inside it";
  one.text =
      "The unexpected names are the sections of a trainer's checkpoint, not tensors. Select the "
      "weights first: load_state_dict(checkpoint[\"model\"]), or \"state_dict\", whichever is in "
      "the list. Nothing is wrong on disk.";
  one.decide = "Check which section holds the tensors.";
  one.command = "shardwright ls CHECKPOINT";
  one.evidence.emplace_back("parts", static_cast<std::int64_t>(count));
  all.push_back(std::move(one));
}

Pairs pairs_by_wrapper_or_prefix(const KeyLists& keys) {
  Pairs best = pairs_by_wrapper(keys);
  for (const Pairs& pairs : {pairs_by_prefix(keys.unexpected, keys.missing, true),
                             pairs_by_prefix(keys.missing, keys.unexpected, false)}) {
    if (pairs.count > best.count) best = pairs;
  }
  return best;
}

void add_renamed_hypothesis(const KeyLists& keys, std::vector<Hypothesis>& all) {
  Pairs pairs = pairs_by_wrapper_or_prefix(keys);
  if (pairs.count == 0) return;
  std::size_t fewer = std::min(keys.missing.size(), keys.unexpected.size());
  Hypothesis one{"renamed", &kMissingKey, FaultSide::kEither};
  one.confidence = pairs.count == fewer ? 0.96 : 0.8;
  one.title = "the same tensors under different names";
  one.text = fmt::format(
      "{} of {} {} in the checkpoint with a different prefix: saved as \"{}\", expected as \"{}\". "
      "Nothing is lost; rename the tensors, or wrap the model as in the run that saved.",
      plural(pairs.count, "missing name"), keys.missing.size(), pairs.count == 1 ? "is" : "are",
      pairs.saved, pairs.asked);
  one.decide = "Check that the shapes of each pair agree.";
  one.command = check_command(kSpec);
  one.evidence.emplace_back("pairs", static_cast<std::int64_t>(pairs.count));
  one.evidence.emplace_back("saved_as", pairs.saved);
  one.evidence.emplace_back("asked_as", pairs.asked);
  all.push_back(std::move(one));
}

std::size_t count_names_with_part(const std::vector<std::string>& names, std::string_view part,
                                  bool anywhere = true) {
  return static_cast<std::size_t>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) {
        return anywhere ? name.find(part) != name.npos : name.starts_with(part);
      }));
}

// With a single list: a wrapper in most of its names is usually absent on the other side.
void add_wrapper(const std::vector<std::string>& names, bool missing,
                 std::vector<Hypothesis>& all) {
  for (const Wrapper& wrapper : kWrappers) {
    if (wrapper.weight == 0) continue;
    std::size_t count = count_names_with_part(names, wrapper.part, wrapper.anywhere);
    if (count * 2 <= names.size()) continue;
    std::string part = "\"" + std::string(wrapper.part) + "\"";
    Hypothesis one{"renamed", missing ? &kMissingKey : &kUnexpectedKey, FaultSide::kEither,
                   wrapper.weight};
    one.title = missing ? "the model's names have " + part + ", the checkpoint's do not"
                        : "the checkpoint's names have " + part + ", the model's do not";
    one.text = part + " comes from " + std::string(wrapper.who) + ", and " +
               (missing ? "the run that saved probably did not use it. "
                        : "the loading model probably does not use it. ") +
               "Nothing is lost: remove it from the names (or add it), or wrap the model as in the "
               "other run.";
    one.decide = missing ? "The checkpoint's own names: do they end the same way?"
                         : "The model's own names: do they end the same way?";
    one.command = missing ? "shardwright ls CHECKPOINT" : check_command(kSpec);
    one.evidence.emplace_back("prefix", std::string(wrapper.part));
    one.evidence.emplace_back("names", static_cast<std::int64_t>(count));
    all.push_back(std::move(one));
    return;
  }
}

// Names of weights that PEFT has wrapped, where an adapter's matrices are next to them.
std::vector<std::string> wrapped_names_with_adapter(const std::vector<std::string>& unexpected) {
  std::vector<std::string> wrapped;
  if (count_names_with_part(unexpected, ".lora_") == 0) return wrapped;
  for (const std::string& name : unexpected) {
    if (name.find(".base_layer.") != name.npos) wrapped.push_back(name);
  }
  return wrapped;
}

const NameClue* find_name_clue(const std::vector<std::string>& names, NameList list) {
  for (const NameClue& clue : name_clues()) {
    if (clue.list != list && clue.list != NameList::kAny) continue;
    auto has_word = [&](const std::string& name) {
      return std::any_of(clue.words.begin(), clue.words.end(), [&](std::string_view word) {
        if (word.starts_with('^')) return name.starts_with(word.substr(1));
        return !word.empty() && name.find(word) != name.npos;
      });
    };
    auto count = std::count_if(names.begin(), names.end(), has_word);
    if (static_cast<std::size_t>(count) * 10 > names.size() * 8) return &clue;
  }
  return nullptr;
}

// The number behind "layers.", "blocks." or "h.", otherwise the first one; nullopt if none.
std::optional<std::int64_t> layer_of(std::string_view name) {
  for (std::string_view part : {"layers.", "blocks.", "blk.", "h."}) {
    std::size_t at = name.find(part);
    if (at == name.npos || (at != 0 && name[at - 1] != '.')) continue;
    std::string_view rest = name.substr(at + part.size());
    std::int64_t layer = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (error == std::errc() && layer >= 0 && end != rest.data() + rest.size() && *end == '.')
      return layer;
  }
  // "body.6.conv.weight": the first part that is a number.
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    std::int64_t layer = 0;
    const std::string_view rest = name.substr(dot + 1);
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (error == std::errc() && layer >= 0 && end != rest.data() + rest.size() && *end == '.')
      return layer;
  }
  return std::nullopt;
}

// Adds a hypothesis for missing last layers: every missing name is in a layer from some number on,
// in several modules.
void add_missing_layers(const std::vector<std::string>& names, std::vector<Hypothesis>& all) {
  std::set<std::int64_t> layers;
  std::set<std::string> modules;
  for (const std::string& name : names) {
    auto layer = layer_of(name);
    if (!layer) return;
    layers.insert(*layer);
    const std::string part = "." + std::to_string(*layer) + ".";
    modules.insert(name.substr(name.find(part) + part.size()));
  }
  const std::int64_t first = *layers.begin(), last = *layers.rbegin();
  const bool runs = last - first == static_cast<std::int64_t>(layers.size()) - 1;
  if (first == 0 || layers.size() < 2 || modules.size() < 3 || !runs) return;
  Hypothesis one{"layers-missing", &kMissingFile, FaultSide::kCheckpoint, 0.8};
  one.title = fmt::format("layers {} to {} are missing completely", first, last);
  one.text =
      "All names are of these layers and none is of an earlier one. The file with the later layers "
      "is missing, a pipeline stage did not save, or the configuration has more layers than the "
      "saved model. Copy the missing file, or correct the number of layers.";
  one.decide = "Check that every file in the index exists, and check num_hidden_layers.";
  one.command = check_command();
  one.evidence.emplace_back("first_layer", first);
  one.evidence.emplace_back("last_layer", last);
  all.push_back(std::move(one));
}

constexpr Interpretation kOtherName = {
    .id = "renamed",
    .rule = &kMissingKey,
    .weight = 0.55,
    .title = "the tensor has a different name in the checkpoint",
    .text =
        "torch loads by name. A wrapper (module., _orig_mod., model.) comes before the name on one "
        "side, or the state dict was saved one level deeper. Nothing is lost; rename the tensors.",
    .decide = "Is there a tensor of the same shape whose name ends the same way?",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kNotSaved = {
    .rule = &kMissingKey,
    .wrong = FaultSide::kCheckpoint,
    .weight = 0.4,
    .title = "the tensor was not saved",
    .text =
        "The run that saved did not write it: a different configuration, or an expert or pipeline "
        "stage that did not save. Take it from an earlier step or the original.",
    .decide = "Look for the name in an earlier step, and compare the configurations of both runs.",
    .command = kSpec};
constexpr Interpretation kOtherNameInModel = {
    .id = "renamed",
    .rule = &kUnexpectedKey,
    .weight = 0.5,
    .title = "the tensor has a different name in the model",
    .text =
        "A wrapper's prefix on one side, or a renamed module. Usually missing names come with the "
        "unexpected ones, and the pairs show the renaming. Paste both lists.",
    .decide = "Check whether each unexpected name has a missing one with the same ending.",
    .command = kSpec};
constexpr Interpretation kFewerInModel = {
    .rule = &kUnexpectedKey,
    .wrong = FaultSide::kRequest,
    .weight = 0.4,
    .title = "the model has fewer tensors",
    .text =
        "The checkpoint has more tensors than the model needs: a different configuration or head. "
        "Nothing is wrong on disk.",
    .decide = "Compare the configurations of both runs.",
    .command = kSpec};

using Meanings = std::vector<const Interpretation*>;

// Meanings of such names for the program that printed the message, otherwise for any program.
Meanings interpretations_of_name_kind(const MessageKind* kind, bool missing) {
  if (kind == nullptr || kind->meanings[0].title.empty())
    return missing ? Meanings{&kOtherName, &kNotSaved}
                   : Meanings{&kOtherNameInModel, &kFewerInModel};
  Meanings own;
  for (const Interpretation& meaning : kind->meanings) {
    if (!meaning.title.empty()) own.push_back(&meaning);
  }
  return own;
}

void add_name_hypotheses(const std::vector<std::string>& names, const MessageKind* kind,
                         bool missing, std::vector<Hypothesis>& all) {
  if (names.empty()) return;
  std::size_t before = all.size();
  if (const NameClue* clue =
          find_name_clue(names, missing ? NameList::kMissing : NameList::kUnexpected))
    all.push_back(hypothesis_of(clue->meaning));
  add_wrapper(names, missing, all);
  if (missing) add_missing_layers(names, all);
  bool clear = all.size() != before;
  for (const Interpretation* meaning : interpretations_of_name_kind(kind, missing)) {
    // A specific hypothesis above explains the renaming, or rules it out
    if (clear && meaning->id == "renamed") continue;
    Hypothesis one = hypothesis_of(*meaning);
    if (clear) one.confidence /= 2;
    all.push_back(std::move(one));
  }
  for (std::size_t i = before; i < all.size(); ++i)
    all[i].evidence.emplace_back("name", names.front());
}

bool has_renamed_interpretation(const MessageKind& kind) {
  return std::any_of(kind.meanings.begin(), kind.meanings.end(),
                     [](const Interpretation& one) { return one.id == "renamed"; });
}

// The wrapper that a name shows by itself; nullptr if none.
const Wrapper* find_wrapper_in_name(std::string_view name) {
  const auto found = std::find_if(kWrappers.begin(), kWrappers.end(), [&](const Wrapper& one) {
    return one.weight > 0 &&
           (one.anywhere ? name.find(one.part) != name.npos : name.starts_with(one.part));
  });
  return found == kWrappers.end() ? nullptr : found;
}

}  // namespace

void add_hypothesis_wrapped_name(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  // An adapter's own names begin with PEFT's prefix.
  if (!has_renamed_interpretation(*message.kind) ||
      message.name.find(".lora_") != std::string::npos)
    return;
  const NameClue* clue = find_name_clue({message.name}, NameList::kUnexpected);
  const bool is_unmerged = clue != nullptr && clue->meaning.id == "unmerged-adapter";
  const Wrapper* wrapper = find_wrapper_in_name(message.name);
  if (!is_unmerged && wrapper == nullptr) return;
  for (Hypothesis& other : all) other.confidence *= 0.5;
  if (is_unmerged) {
    all.push_back(hypothesis_of(clue->meaning));
    all.back().evidence.emplace_back("name", message.name);
    return;
  }
  Hypothesis one{"renamed", &kWrappedNames, FaultSide::kEither, 0.88};
  one.title = fmt::format("the name contains `{}`, which {} adds", wrapper->part, wrapper->who);
  one.text =
      "One side was saved or built inside the wrapper, the other was not, so no name matches. "
      "Nothing is lost. If the checkpoint's names contain it, the repair removes it; if not, load "
      "into the model before it is wrapped.";
  one.decide = "Check whether the checkpoint's names contain it.";
  one.command = check_command();
  one.evidence.emplace_back("name", message.name);
  all.push_back(std::move(one));
}

void add_hypotheses_from_names(const KeyLists& keys, std::vector<Hypothesis>& all) {
  // They pair up with missing names, and a rename would lose the adapter.
  if (const auto wrapped = wrapped_names_with_adapter(keys.unexpected); !wrapped.empty())
    return add_name_hypotheses(wrapped, keys.unexpected_kind, false, all);
  add_truncated_names_hypothesis(keys, all);
  add_trainer_dict_hypothesis(keys, all);
  add_renamed_hypothesis(keys, all);
  if (all.empty()) add_renamed_parts(keys, all);
  if (all.empty()) add_name_families(keys, all);
  if (!all.empty()) return;
  add_name_hypotheses(keys.missing, keys.missing_kind, true, all);
  add_name_hypotheses(keys.unexpected, keys.unexpected_kind, false, all);
}

}  // namespace shw
