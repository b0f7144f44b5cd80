#include "core/verbs/weight_entries.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/model/state_names.h"

namespace shw::verbs {
namespace {

// Keys under which trainers save a model's state dict.
constexpr auto kModelKeys = std::to_array<std::string_view>(
    {"model", "module", "state_dict", "model_state_dict", "model_state", "model_states",
     "model_weights", "weights", "net", "network", "params"});
// First parts of names that never belong to the model, in every format.
constexpr auto kOtherRoots = std::to_array<std::string_view>({"optimizer",
                                                              "optimizers",
                                                              "optim",
                                                              "optimizer_state",
                                                              "optimizer_states",
                                                              "optim_state",
                                                              "opt_state",
                                                              "optimizer_state_dict",
                                                              "optim_state_dict",
                                                              "lr_scheduler",
                                                              "lr_schedulers",
                                                              "opt_param_scheduler",
                                                              "rng",
                                                              "rng_state",
                                                              "rng_states",
                                                              "random_states",
                                                              "cuda_rng_state",
                                                              "cpu_rng_state",
                                                              "torch_rng_state",
                                                              "grad_scaler",
                                                              "loss_scaler",
                                                              "dataloader",
                                                              "data_loader",
                                                              "dl_state_dict",
                                                              "train_state",
                                                              "trainer_state",
                                                              "extra_state",
                                                              "rerun_state_machine"});

// The name in lower case without the number at its end: "Optimizer_0" and "optimizer-1" become
// "optimizer".
std::string lowered_without_number(std::string_view root) {
  while (!root.empty() && root.back() >= '0' && root.back() <= '9') root.remove_suffix(1);
  while (!root.empty() && (root.back() == '_' || root.back() == '-')) root.remove_suffix(1);
  return lowered(root);
}

// True also for "model0", "model_pp1": pipeline stages on one rank.
bool is_model_key(std::string_view root) {
  if (is_one_of(lowered(root), kModelKeys)) return true;
  const std::string stem = lowered_without_number(root);
  return stem.size() < root.size() && (stem == "model" || stem == "model_pp");
}

bool is_non_weight_root(std::string_view root) {
  return is_one_of(lowered(root), kOtherRoots) ||
         is_one_of(lowered_without_number(root), kOtherRoots);
}

std::string_view root_of_name(std::string_view fqn) {
  return fqn.substr(0, fqn.find_first_of("./"));
}

// The key at the top of the state dict; empty if the entry itself is at the top, or the format has
// no structure.
std::string_view top_level_key(std::span<const PathPart> path) {
  if (path.size() < 2) return {};
  const auto* key = std::get_if<std::string>(&path.front());
  return key == nullptr ? std::string_view() : std::string_view(*key);
}

bool is_state_by_name(std::string_view fqn) {
  constexpr std::string_view kChained = "chained_";  // for Megatron's chained optimizers
  if (fqn.starts_with(kChained) && fqn.find('.') != std::string_view::npos)
    fqn.remove_prefix(fqn.find('.') + 1);
  return is_non_weight_root(root_of_name(fqn)) || parse_state_fqn(fqn).has_value() ||
         fqn.ends_with("._extra_state") || fqn.find(".param_groups.") != std::string_view::npos;
}

struct Structure {
  bool has_model_key = false;   // true: tensors are under the key of a model
  bool has_flat_model = false;  // true: tensors with dotted names are at the top
};

Structure key_structure_of(const Checkpoint& checkpoint) {
  Structure found;
  for (TensorId tensor : checkpoint.tensors()) {
    const auto path = checkpoint.path(tensor);
    const std::string_view fqn = checkpoint.fqn(tensor);
    if (is_state_by_name(fqn)) continue;
    found.has_model_key = found.has_model_key || is_model_key(top_level_key(path));
    found.has_flat_model =
        found.has_flat_model || (path.size() == 1 && fqn.find('.') != std::string_view::npos);
  }
  return found;
}

bool is_weight(const Structure& structure, std::span<const PathPart> path, std::string_view fqn) {
  if (is_state_by_name(fqn)) return false;
  if (path.empty()) return true;
  const std::string_view above = top_level_key(path);
  if (structure.has_model_key) return is_model_key(above);
  // Below "0.weight" are the tensors that a quantised weight wraps.
  const bool is_below_weight = above.find('.') != std::string_view::npos;
  return !structure.has_flat_model || path.size() == 1 || is_below_weight;
}

// "model." if all tensors are under one key.
std::string common_model_key(const std::vector<std::string_view>& keys) {
  const bool is_one = !keys.empty() && !keys.front().empty() &&
                      std::all_of(keys.begin(), keys.end(),
                                  [&](std::string_view key) { return key == keys.front(); });
  return is_one ? std::string(keys.front()) + "." : std::string();
}

}  // namespace

NonWeightEntries entries_that_are_not_weights(const Checkpoint& checkpoint) {
  const Structure structure = key_structure_of(checkpoint);
  NonWeightEntries left;
  auto leave_out = [&](std::string_view fqn) {
    left.names.emplace_back(fqn);
    ++left.by_root[std::string(root_of_name(fqn))];
  };
  std::vector<std::string_view> keys;
  for (TensorId tensor : checkpoint.tensors()) {
    const auto path = checkpoint.path(tensor);
    const std::string_view fqn = checkpoint.fqn(tensor);
    if (is_weight(structure, path, fqn))
      keys.push_back(structure.has_model_key ? top_level_key(path) : std::string_view());
    else
      leave_out(fqn);
  }
  for (const NonTensorEntry& object : checkpoint.objects()) leave_out(object.fqn);
  left.model_key = common_model_key(keys);
  return left;
}

std::string in_words(const NonWeightEntries& left) {
  if (left.names.empty()) return {};
  std::vector<std::pair<std::size_t, std::string>> roots;
  for (const auto& [root, count] : left.by_root) roots.emplace_back(count, root);
  std::sort(roots.begin(), roots.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::string> words;
  for (const auto& [count, root] : roots) words.push_back(fmt::format("{} {}", root, count));
  return fmt::format("left out: {} {} not weights ({})", plural(left.names.size(), "entry"),
                     left.names.size() == 1 ? "that is" : "that are", short_list_text(words, 6));
}

}  // namespace shw::verbs
