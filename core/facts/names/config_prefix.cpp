#include "core/facts/names/config_prefix.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "core/base/cancellable_range.h"
#include "core/facts/reference/config_constraints.h"
#include "core/facts/reference/config_names.h"

namespace shw {
namespace {

// Names of layer tensors with * for numbers. Norms and heads are excluded, because other parts have
// them too.
std::unordered_set<std::string> layer_name_patterns(const ModelPart& part) {
  std::unordered_set<std::string> names;
  for (const SizeConstraint& constraint : part.constraints->sizes) {
    if (constraint.name.find('*') != std::string_view::npos) names.emplace(constraint.name);
  }
  return names;
}

// The prefix before a layer's name; nullopt if the name is not of a layer.
std::optional<std::string> prefix_before_layer(const std::unordered_set<std::string>& layers,
                                               std::string_view fqn) {
  std::string_view rest = fqn;
  for (;;) {
    if (layers.contains(replace_numbers_by_stars(rest)))
      return std::string(fqn.substr(0, fqn.size() - rest.size()));
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(dot + 1);
  }
}

bool is_root(const ModelPart& part, std::string_view prefix) {
  return std::find(part.roots.begin(), part.roots.end(), prefix) != part.roots.end();
}

bool is_head(const ModelPart& part, std::string_view fqn) {
  return std::find(part.heads.begin(), part.heads.end(), fqn) != part.heads.end();
}

// True if the layers have no prefix and the head is next to them. The inner model alone is saved
// without a prefix too, but has no head.
bool has_lost_prefix(const Checkpoint& checkpoint, const ModelPart& part, std::string_view found) {
  return found.empty() && !part.roots.front().empty() &&
         std::any_of(part.heads.begin(), part.heads.end(),
                     [&](const std::string& head) { return checkpoint.find(head).has_value(); });
}

// True for names of Megatron-core or torchtitan: their loaders expect them, and config.json only
// describes the model.
bool has_names_of_trainer(const Checkpoint& checkpoint) {
  constexpr std::string_view kEmbeddings[] = {"embedding.word_embeddings.weight",
                                              "tok_embeddings.weight"};
  for (TensorId tensor : checkpoint.tensors()) {
    for (std::string_view name : kEmbeddings) {
      if (checkpoint.fqn(tensor).ends_with(name)) return true;
    }
  }
  return false;
}

void add_names(const Checkpoint& checkpoint, const ModelPart& part, ConfigPrefix& prefix,
               const Progress* progress) {
  const bool ends_right = prefix.found.ends_with(prefix.expected);
  const std::string extra =
      prefix.found.substr(0, prefix.found.size() - (ends_right ? prefix.expected.size() : 0));
  bool all_have_extra = ends_right;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress))
    all_have_extra = all_have_extra && checkpoint.fqn(tensor).starts_with(extra);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    const std::string_view fqn = checkpoint.fqn(tensor);
    if (prefix.found.empty() && is_head(part, fqn)) continue;
    if (fqn.starts_with(prefix.found)) {
      prefix.names.emplace_back(tensor,
                                prefix.expected + std::string(fqn.substr(prefix.found.size())));
      continue;
    }
    if (!ends_right || !fqn.starts_with(extra)) continue;
    const std::string rest(fqn.substr(extra.size()));
    if (all_have_extra || is_head(part, rest)) prefix.names.emplace_back(tensor, rest);
  }
}

ConfigPrefix remove_added_prefix(const Checkpoint& checkpoint, const std::string& added,
                                 const std::string& model_type, const Progress* progress) {
  ConfigPrefix prefix;
  prefix.found = added;
  prefix.model_type = model_type;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    const std::string_view fqn = checkpoint.fqn(tensor);
    if (fqn.starts_with(added))
      prefix.names.emplace_back(tensor, std::string(fqn.substr(added.size())));
  }
  prefix.layers = prefix.names.size();
  return prefix;
}

}  // namespace

std::optional<ConfigPrefix> wrong_config_prefix(const Checkpoint& checkpoint,
                                                const Progress* progress) {
  if (checkpoint.directory() == nullptr) return std::nullopt;
  auto config = read_model_config(*checkpoint.directory());
  if (!config || !*config) return std::nullopt;
  if (auto added = added_prefix(checkpoint, **config, progress))
    return remove_added_prefix(checkpoint, *added, (*config)->parts.front().model_type, progress);
  const std::vector<ModelPart> parts = parts_with_known_constraints(**config);
  // A single prefix can only be right for a model of one part.
  if (parts.size() != 1 || parts.front().config != &(*config)->parts.front()) return std::nullopt;
  const ModelPart& part = parts.front();
  const auto layers = layer_name_patterns(part);
  std::map<std::string, std::size_t> seen;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (auto before = prefix_before_layer(layers, checkpoint.fqn(tensor))) ++seen[*before];
  }
  if (seen.size() != 1 || has_names_of_trainer(checkpoint)) return std::nullopt;
  const std::string& found = seen.begin()->first;
  if (is_root(part, found) && !has_lost_prefix(checkpoint, part, found)) return std::nullopt;
  ConfigPrefix prefix;
  prefix.found = seen.begin()->first;
  prefix.expected = part.roots.front();
  prefix.model_type = part.config->model_type;
  prefix.layers = seen.begin()->second;
  add_names(checkpoint, part, prefix, progress);
  return prefix;
}

}  // namespace shw
