#include "core/explain/checkpoint_lookup.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// True if `longer` is `shorter` with parts before it: "model.norm.weight", "norm.weight".
bool is_prefixed(std::string_view longer, std::string_view shorter) {
  return longer.size() > shorter.size() && longer.ends_with(shorter) &&
         longer[longer.size() - shorter.size() - 1] == '.';
}

// The shortest name with or without a prefix; single parts such as "weight" name nothing.
std::optional<TensorId> find_prefixed(const Checkpoint& checkpoint, std::string_view name) {
  std::optional<TensorId> found;
  for (TensorId tensor : checkpoint.tensors()) {
    const std::string_view stored = checkpoint.fqn(tensor);
    const std::string_view shorter = stored.size() < name.size() ? stored : name;
    if (shorter.find('.') == shorter.npos) continue;
    if (!is_prefixed(stored, name) && !is_prefixed(name, stored)) continue;
    if (!found || stored.size() < checkpoint.fqn(*found).size()) found = tensor;
  }
  return found;
}

bool is_file_name(std::string_view text) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".safetensors", ".bin", ".json", ".pt", ".pth", ".ckpt", ".gguf", ".model", ".distcp",
       ".metadata", ".npz", ".h5", ".py", ".txt", ".jinja", ".index"});
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return text.ends_with(ending); });
}

// "q_proj.lora_A.default.weight" of a loaded adapter is "q_proj.lora_A.weight" in its file.
std::optional<std::string> without_adapter_name(std::string_view name) {
  for (const std::string_view side : {".lora_A.", ".lora_B."}) {
    const std::size_t at = name.rfind(side);
    if (at == name.npos) continue;
    const std::size_t begin = at + side.size();
    const std::size_t end = name.find('.', begin);
    if (end == name.npos || name.find('.', end + 1) != name.npos) continue;
    return std::string(name.substr(0, begin)) + std::string(name.substr(end + 1));
  }
  return std::nullopt;
}

// As it is, as its file names it if it is a part of an adapter, or behind a prefix.
std::optional<TensorId> find_saved(const Checkpoint& checkpoint, std::string_view name) {
  if (const auto tensor = checkpoint.find(name)) return tensor;
  const auto in_file = without_adapter_name(name);
  if (in_file) {
    if (const auto tensor = checkpoint.find(*in_file)) return tensor;
  }
  const auto found = find_prefixed(checkpoint, name);
  return found || !in_file ? found : find_prefixed(checkpoint, *in_file);
}

std::size_t count_beginning_with(const Checkpoint& checkpoint, std::string_view prefix) {
  std::size_t count = 0;
  for (TensorId tensor : checkpoint.tensors()) count += checkpoint.fqn(tensor).starts_with(prefix);
  return count;
}

std::string shape_text(const Checkpoint& checkpoint, TensorId tensor) {
  return fmt::format("{} {}", to_text(checkpoint.shape(tensor)), name(checkpoint.dtype(tensor)));
}

// What the stored shape says about the message's two shapes; empty if it has none.
std::string shape_verdict(const ErrorMessage& message, ExtentsView stored) {
  if (message.saved.empty() && message.current.empty()) return "";
  auto equals = [&](const Extents& shape) {
    return std::equal(shape.begin(), shape.end(), stored.begin(), stored.end());
  };
  if (equals(message.saved))
    return " This equals the saved shape in the message: the model expects a different one.";
  if (equals(message.current))
    return " This equals the shape that the model expects: the message is about a different file.";
  return " This equals neither shape in the message: it is about a different checkpoint, or about "
         "one rank's shard.";
}

NameLookup lookup_of_found_tensor(const ErrorMessage& message, const Checkpoint& checkpoint,
                                  TensorId tensor) {
  const std::string stored(checkpoint.fqn(tensor));
  NameLookup one{message.name, NameFound::kHere, stored, Extents(checkpoint.shape(tensor))};
  if (stored == message.name || without_adapter_name(message.name) == stored) {
    one.text = fmt::format("{} is here, {}.", message.name, shape_text(checkpoint, tensor));
    if (message.kind->id == kMissingKeyForm)
      one.text += " The program reads a different file, or looks for a different name.";
  } else {
    one.found = NameFound::kUnderOtherName;
    const bool is_longer = stored.size() > message.name.size();
    const std::string& longer = is_longer ? stored : message.name;
    one.prefix = longer.substr(0, longer.size() - std::min(stored.size(), message.name.size()));
    one.checkpoint_has_prefix = is_longer;
    one.text = fmt::format("{} is here as {}, {}: {} \"{}\".", message.name, stored,
                           shape_text(checkpoint, tensor),
                           is_longer ? "the checkpoint adds" : "the checkpoint lacks", one.prefix);
  }
  one.text += shape_verdict(message, checkpoint.shape(tensor));
  return one;
}

// True if the module, "...self_attn.", has the weights of several projections in one tensor, so
// that none of them is missing by its own name.
bool holds_fused_weights(const Checkpoint& checkpoint, std::string_view module) {
  constexpr auto kFused = std::to_array<std::string_view>(
      {"qkv", "query_key_value", "in_proj", "c_attn", "W_pack", "kv_proj", "kv_a_proj", "gate_up",
       "w13", "w12", "linear_fc1", "wi"});
  for (TensorId tensor : checkpoint.tensors()) {
    const std::string_view fqn = checkpoint.fqn(tensor);
    if (!fqn.starts_with(module)) continue;
    if (std::any_of(kFused.begin(), kFused.end(), [&](std::string_view word) {
          return fqn.substr(module.size()).find(word) != fqn.npos;
        }))
      return true;
  }
  return false;
}

// The result for a name that is not in the checkpoint: counts the tensors of the innermost module
// that exists. Tensors of its own layer or block are siblings, those of the whole model are not.
NameLookup lookup_of_missing_tensor(const ErrorMessage& message, const Checkpoint& checkpoint) {
  NameLookup one{message.name};
  one.text = fmt::format("{} is not in the checkpoint", message.name);
  int level = 0;
  for (std::size_t dot = message.name.rfind('.'); dot != std::string::npos && dot != 0;
       dot = message.name.rfind('.', dot - 1), ++level) {
    const std::string module = message.name.substr(0, dot + 1);
    const std::size_t siblings = count_beginning_with(checkpoint, module);
    if (siblings == 0) continue;
    one.has_siblings = level <= 1 && !holds_fused_weights(checkpoint, module);
    one.text += fmt::format("; {} {} with \"{}\"", plural(siblings, "tensor"),
                            siblings == 1 ? "begins" : "begin", module);
    break;
  }
  one.text += '.';
  return one;
}

}  // namespace

std::string_view name(NameFound found) {
  switch (found) {
    case NameFound::kHere:
      return "here";
    case NameFound::kUnderOtherName:
      return "under-other-name";
    case NameFound::kNowhere:
      break;
  }
  return "nowhere";
}

CheckpointLookup look_up(const ErrorText& parsed, const Checkpoint& checkpoint) {
  CheckpointLookup lookup;
  std::set<std::string_view> seen;
  for (const ErrorMessage& message : parsed.messages) {
    const bool is_tensor = message.name.find('.') != message.name.npos &&
                           message.name.find_first_of("/\\ ") == message.name.npos &&
                           !is_file_name(message.name);
    if (!is_tensor || !seen.insert(message.name).second) continue;
    if (lookup.names.size() == kMaxLookups) break;
    const auto tensor = find_saved(checkpoint, message.name);
    lookup.names.push_back(tensor ? lookup_of_found_tensor(message, checkpoint, *tensor)
                                  : lookup_of_missing_tensor(message, checkpoint));
    const NameFound found = lookup.names.back().found;
    lookup.here += found == NameFound::kHere;
    lookup.under_other_name += found == NameFound::kUnderOtherName;
    lookup.nowhere += found == NameFound::kNowhere;
  }
  return lookup;
}

namespace {

bool is_about_missing_names(const ErrorText& parsed) {
  return std::all_of(parsed.messages.begin(), parsed.messages.end(),
                     [](const ErrorMessage& one) { return one.kind->id == kMissingKeyForm; });
}

constexpr std::string_view kLookedUp =
    "The names in the message (at most 64) were looked up in the checkpoint.";

Hypothesis prefixed_names_hypothesis(const NameLookup& one) {
  Hypothesis cause{"renamed", find_rule(kWrappedNames.id), FaultSide::kEither};
  cause.title = fmt::format("all names are in the checkpoint, {} the prefix \"{}\"",
                            one.checkpoint_has_prefix ? "behind" : "without", one.prefix);
  cause.text =
      "A wrapper (DDP, torch.compile, PEFT, a trainer) or a different class added the prefix to "
      "these names on one side. Rename the tensors, or load into the class that saved them.";
  cause.decide = std::string(kLookedUp);
  return cause;
}

Hypothesis all_here() {
  Hypothesis cause{"other-file", nullptr, FaultSide::kRequest};
  cause.title = "all names are in the checkpoint: the program read a different file or folder";
  cause.text =
      "Each tensor that the message calls missing is in this checkpoint under that name. The "
      "program got a different path, read one shard without its index, or looks under a different "
      "key of the file.";
  cause.decide = std::string(kLookedUp);
  return cause;
}

Hypothesis not_saved_hypothesis() {
  Hypothesis cause{"not-saved", nullptr, FaultSide::kEither};
  cause.title = "the checkpoint has no tensor of that name";
  cause.text =
      "Other tensors of the same module are there, under the names that the program uses. Either "
      "the save left this one out, or the loading model has more tensors than the saved one. Only "
      "another checkpoint or the run has its values.";
  cause.decide = std::string(kLookedUp);
  return cause;
}

bool are_all_missing_among_siblings(const CheckpointLookup& lookup) {
  return std::all_of(lookup.names.begin(), lookup.names.end(), [](const NameLookup& one) {
    return one.found == NameFound::kNowhere && one.has_siblings;
  });
}

// The cause that the lookup shows; nullopt if names are partly here.
std::optional<Hypothesis> hypothesis_from_lookup(const CheckpointLookup& lookup) {
  const NameLookup& first = lookup.names.front();
  const bool is_one_prefix =
      lookup.under_other_name == lookup.names.size() &&
      std::all_of(lookup.names.begin(), lookup.names.end(),
                  [&](const NameLookup& one) { return one.prefix == first.prefix; });
  std::optional<Hypothesis> cause;
  if (is_one_prefix) {
    cause = prefixed_names_hypothesis(first);
  } else if (lookup.here == lookup.names.size()) {
    cause = all_here();
  } else if (are_all_missing_among_siblings(lookup)) {
    cause = not_saved_hypothesis();
  }
  if (cause)
    cause->command = cause->id == "other-file" ? "shardwright info CHECKPOINT" : check_command();
  return cause;
}

}  // namespace

void add_lookup_result(const CheckpointLookup& lookup, Explanation& explanation) {
  constexpr double kNearlyCertain = 0.95;
  if (lookup.names.empty() || !is_about_missing_names(explanation.parsed)) return;
  std::optional<Hypothesis> shown = hypothesis_from_lookup(lookup);
  if (!shown) return;
  Hypothesis cause = std::move(*shown);
  cause.confidence = kNearlyCertain;
  cause.rank = 1;
  for (Hypothesis& one : explanation.hypotheses) {
    one.confidence *= 1 - kNearlyCertain;
    ++one.rank;
  }
  explanation.none_of_these *= 1 - kNearlyCertain;
  explanation.hypotheses.insert(explanation.hypotheses.begin(), std::move(cause));
}

}  // namespace shw
