#include "core/facts/reference/config_fit.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/base/cancellable_range.h"
#include "core/base/parse_text.h"
#include "core/facts/reference/class_constraints.h"
#include "core/facts/reference/config_constraints.h"
#include "core/facts/reference/config_experts.h"
#include "core/facts/reference/config_general.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/patch_sizes.h"
#include "core/formats/common/top_file.h"
#include "core/model/evidence.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// True for file names that transformers reads: "model.safetensors",
// "model-00001-of-00002.safetensors", "pytorch_model.bin", optionally with a variant
// ("model.fp16.safetensors"). vLLM's sharded files ("model-rank-0-part-0.safetensors") hold one
// rank's part of each tensor.
bool is_of_pretrained(const FileRow& file) {
  const std::string_view path = file.path;
  return is_at_top(path) && (path.starts_with("model") || path.starts_with("pytorch_model")) &&
         path.find("rank") == std::string_view::npos &&
         (path.ends_with(".safetensors") || path.ends_with(".bin"));
}

bool contains_pretrained(const Checkpoint& c) {
  if (c.directory() == nullptr || !c.format().traits.has_one_piece_per_tensor) return false;
  std::size_t used = 0;
  for (const FileRow& file : c.files()) {
    if (!file.referenced) continue;
    if (!is_of_pretrained(file)) return false;
    ++used;
  }
  return used != 0;
}

// True for "vocab_size" and "text_config.vocab_size".
bool is_vocabulary_size(std::string_view expression) {
  return expression.ends_with("vocab_size") &&
         expression.find_first_of("*+") == std::string_view::npos;
}

class SizeChecks {
 public:
  explicit SizeChecks(const Checkpoint& checkpoint) : c_(checkpoint) {}
  void check_size(TensorId tensor, const ConstraintOfName& constraint) {
    const ExtentsView shape = c_.shape(tensor);
    if (!is_plain_float(c_.dtype(tensor))) return;
    // Skips vectors stored with an additional axis, and flattened tensors of trainers.
    const std::size_t said = constraint.extents[1].empty() ? 1 : 2;
    const bool is_vector = constraint.extents[1].empty() && constraint.extents[0].empty();
    if (is_vector || shape.size() < said || record_if_axes_swapped(tensor, constraint)) return;
    for (std::size_t axis = 0; axis < said; ++axis) check_size(tensor, axis, constraint);
  }
  std::vector<ExchangedAxes> exchanged() const { return exchanged_; }
  std::vector<SizeContradiction> release_contradictions() && {
    std::vector<SizeContradiction> found;
    for (auto& [key, check] : checks_) {
      // Without a table written by hand a key may mean something else for some layers. The table of
      // a class is exact for each tensor outside of layers.
      const bool is_mixed =
          key.first->constraints->types.empty() && check.agreeing != 0 &&
          (!key.first->constraints->is_of_class || has_any_tensor_in_layer(check.tensors));
      if (!check.tensors.empty() && !is_mixed) found.push_back(std::move(check));
    }
    // Single keys come before products that contain them, because they explain them.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.keys.size() < b.keys.size(); });
    std::set<std::string> wrong;
    std::erase_if(found, [&](const SizeContradiction& one) {
      const bool is_explained =
          one.keys.size() > 1 && std::any_of(one.keys.begin(), one.keys.end(),
                                             [&](const auto& key) { return wrong.contains(key); });
      if (one.keys.size() == 1 && one.agreeing == 0) wrong.insert(one.keys.front());
      return is_explained;
    });
    return found;
  }

 private:
  bool has_any_tensor_in_layer(const std::vector<SizeContradiction::Contradicting>& tensors) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& one) {
      return replace_numbers_by_stars(c_.fqn(one.tensor)).find('*') != std::string::npos;
    });
  }
  // True if each axis has the size that the config gives the other one.
  bool record_if_axes_swapped(TensorId tensor, const ConstraintOfName& constraint) {
    const ExtentsView shape = c_.shape(tensor);
    if (shape.size() != 2 || shape[0] == shape[1]) return false;
    const auto rows = configured_size(*constraint.part, constraint.extents[0]);
    const auto columns = configured_size(*constraint.part, constraint.extents[1]);
    if (!rows || !columns || shape[0] != columns->value || shape[1] != rows->value) return false;
    exchanged_.push_back(
        {tensor, {rows->value, columns->value}, rows->words + " and " + columns->words});
    return true;
  }
  void check_size(TensorId tensor, std::size_t axis, const ConstraintOfName& constraint) {
    const std::string_view expression = constraint.extents[axis];
    auto said = configured_size(*constraint.part, expression);
    if (!said) return;
    const std::int64_t saved = c_.shape(tensor)[axis];
    auto& check = checks_[std::pair(constraint.part, expression)];
    const bool is_first = check.tensors.empty();
    if (saved == said->value) {
      ++check.agreeing;
      return;
    }
    const bool is_padding = is_vocabulary_size(expression) && saved > said->value;
    check.only_more_rows = is_padding && (is_first || check.only_more_rows);
    check.words = std::move(said->words);
    check.keys = std::move(said->keys);
    check.said = said->value;
    check.tensors.push_back({tensor, axis});
  }

  const Checkpoint& c_;
  std::map<std::pair<const ModelPart*, std::string_view>, SizeContradiction> checks_;
  std::vector<ExchangedAxes> exchanged_;
};

// --- numbers of layers and experts

using CountedNumbers = std::set<std::int64_t>;

// Splits "12.mlp.up_proj.weight" into the number and the rest.
std::optional<std::int64_t> consume_member_number(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot > 9) return std::nullopt;
  std::int64_t number = 0;
  for (char c : rest.substr(0, dot)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  rest.remove_prefix(dot + 1);
  return number;
}

// Additional prediction layers follow the model's own and are read by other loaders only.
bool is_prediction_layer_name(std::string_view rest) {
  return rest.starts_with("eh_proj") || rest.starts_with("enorm") || rest.starts_with("hnorm") ||
         rest.starts_with("shared_head");
}

struct StackSummary {
  const StackConstraint* constraint = nullptr;
  const ModelPart* part = nullptr;
  CountedNumbers layers, predicting;
  std::map<std::string, std::pair<std::int64_t, CountedNumbers>> inner;  // by list
};
using StacksByName = std::map<std::string, StackSummary, std::less<>>;  // by list: "model.layers."

StacksByName stacks_of(const std::vector<ModelPart>& parts) {
  StacksByName stacks;
  for (const ModelPart& part : parts) {
    for (const std::string& root : part.roots) {
      for (const StackConstraint& constraint : part.constraints->stacks)
        stacks.emplace(root + std::string(constraint.name),
                       StackSummary{&constraint, &part, {}, {}, {}});
    }
  }
  return stacks;
}

void record_stack_member(StacksByName& stacks, std::string_view fqn) {
  for (auto& [name, stack] : stacks) {
    if (!fqn.starts_with(name)) continue;
    std::string_view rest = fqn.substr(name.size());
    const auto layer = consume_member_number(rest);
    if (!layer) continue;
    stack.layers.insert(*layer);
    if (is_prediction_layer_name(rest)) stack.predicting.insert(*layer);
    for (std::string_view inner : split_at(stack.constraint->inner, '|')) {
      if (inner.empty() || !rest.starts_with(inner)) continue;
      std::string_view after = rest.substr(inner.size());
      const std::string row(fqn.substr(0, fqn.size() - after.size()));
      if (const auto number = consume_member_number(after)) {
        auto& [of, numbers] = stack.inner[row];
        of = *layer;
        numbers.insert(*number);
      }
    }
  }
}

std::vector<NumberRange> missing_number_ranges(const CountedNumbers& there, std::int64_t count) {
  std::vector<NumberRange> missing;
  std::int64_t next = 0;
  for (std::int64_t number : there) {
    if (number >= count) break;
    if (number > next) missing.push_back({next, number - 1});
    next = number + 1;
  }
  if (next < count) missing.push_back({next, count - 1});
  return missing;
}

std::vector<NumberRange> numbers_beyond_count(const CountedNumbers& there, std::int64_t count) {
  std::vector<NumberRange> extra;
  for (auto at = there.lower_bound(count); at != there.end(); ++at) {
    if (!extra.empty() && extra.back().last + 1 == *at)
      extra.back().last = *at;
    else
      extra.push_back({*at, *at});
  }
  return extra;
}

std::optional<CountContradiction> contradiction_of_count(const std::string& row,
                                                         const CountedNumbers& there,
                                                         const CountedNumbers& allowed,
                                                         const ConfiguredSize& said) {
  CountedNumbers counted;
  std::set_difference(there.begin(), there.end(), allowed.begin(), allowed.end(),
                      std::inserter(counted, counted.end()));
  CountContradiction found;
  found.row = row;
  found.words = said.words;
  found.key = said.keys.front();
  found.said = said.value;
  found.there = static_cast<std::int64_t>(there.size());
  found.missing = missing_number_ranges(there, said.value);
  found.extra = numbers_beyond_count(counted, said.value);
  found.rows = {row};
  if (found.missing.empty() && found.extra.empty()) return std::nullopt;
  return found;
}

bool is_same_contradiction(const CountContradiction& a, const CountContradiction& b) {
  auto alike = [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const NumberRange& x, const NumberRange& y) {
                        return x.first == y.first && x.last == y.last;
                      });
  };
  return a.key == b.key && alike(a.missing, b.missing) && alike(a.extra, b.extra);
}

// The experts of each layer; layers with equal gaps are reported together.
void add_expert_count_contradictions(const StackSummary& stack, const CountedNumbers& of_model,
                                     std::vector<CountContradiction>& out) {
  const auto said = configured_size(*stack.part, stack.constraint->inner_count);
  if (!said || said->value == 0) return;
  const std::size_t begin = out.size();
  for (const auto& [row, seen] : stack.inner) {
    if (!of_model.contains(seen.first)) continue;
    auto found = contradiction_of_count(row, seen.second, {}, *said);
    if (!found) continue;
    auto same =
        std::find_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
                     [&](const auto& other) { return is_same_contradiction(other, *found); });
    if (same != out.end())
      same->rows.push_back(row);
    else
      out.push_back(std::move(*found));
  }
}

void add_counts(const StackSummary& stack, const std::string& row,
                std::vector<CountContradiction>& out) {
  const auto said = configured_size(*stack.part, stack.constraint->count);
  if (stack.layers.empty() || !said) return;
  // Numbers of prediction layers, known by their names or by the key that counts them.
  CountedNumbers allowed = stack.predicting;
  const auto more = configured_size(*stack.part, stack.constraint->more);
  for (auto at = stack.layers.lower_bound(said->value); more && at != stack.layers.end(); ++at) {
    if (*at - said->value < more->value) allowed.insert(*at);
  }
  if (auto found = contradiction_of_count(row, stack.layers, allowed, *said))
    out.push_back(std::move(*found));
  CountedNumbers of_model;
  std::copy_if(stack.layers.begin(), stack.layers.end(), std::inserter(of_model, of_model.end()),
               [&](std::int64_t layer) { return layer < said->value; });
  add_expert_count_contradictions(stack, of_model, out);
}

// If one part's layers have two prefixes, the model's own cannot be identified.
bool has_several_layer_prefixes(const StacksByName& stacks, const StackSummary& stack) {
  std::size_t seen = 0;
  for (const auto& [name, other] : stacks)
    seen +=
        other.part == stack.part && other.constraint == stack.constraint && !other.layers.empty()
            ? 1
            : 0;
  return seen > 1;
}

// --- the output head

// The missing head of a model whose config does not tie it. Without prefix only the inner model was
// saved, as for text embedding models.
std::optional<std::string> missing_head_of(const Checkpoint& c, const ModelConfig& config,
                                           const ModelPart& part) {
  const ConfigPart& whole = config.parts.front();
  auto ties = whole.flags.find("tie_word_embeddings");
  if (part.constraints->types.empty() || part.config != &whole || part.heads.empty() ||
      ties == whole.flags.end() || ties->second)
    return std::nullopt;
  if (config.architectures.size() != 1) return std::nullopt;
  const std::string& made = config.architectures.front();
  if (!made.ends_with("ForCausalLM") && !made.ends_with("LMHeadModel")) return std::nullopt;
  const std::string embedding =
      part.roots.front() + std::string(part.constraints->sizes.front().name);
  if (!c.find(embedding) || has_tensor_or_parts(c, part.heads.front())) return std::nullopt;
  if (c.find("lm_head.weight")) return std::nullopt;  // GPT-NeoX's embed_out, in memory
  return part.heads.front();
}

// The config's dtype, and the common dtype of all weights if different.
std::optional<std::pair<Dtype, Dtype>> mismatched_dtype(const Checkpoint& c,
                                                        std::string_view said) {
  const std::string_view bare = said.starts_with("torch.") ? said.substr(6) : said;
  Dtype expected = Dtype::kUnknown;
  for (Dtype one : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16})
    if (bare == name(one)) expected = one;
  if (expected == Dtype::kUnknown) return std::nullopt;
  std::optional<Dtype> all;
  for (TensorId tensor : c.tensors()) {
    const Dtype dtype = c.dtype(tensor);
    if (!is_plain_float(dtype)) continue;
    if (dtype == expected || (all && *all != dtype)) return std::nullopt;
    all = dtype;
  }
  if (!all) return std::nullopt;
  return std::pair(expected, *all);
}

void compare_parts(const Checkpoint& c, const ModelConfig& config, std::vector<ModelPart> parts,
                   Progress* progress, ConfigFit& fit) {
  add_vision_tower(config, parts);
  const ConstraintsByName constraints = constraints_by_name(parts);
  StacksByName stacks = stacks_of(parts);
  SizeChecks sizes(c);
  bool is_any_known = false;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    const std::string_view fqn = c.fqn(tensor);
    record_stack_member(stacks, fqn);
    auto constraint = constraints.find(replace_numbers_by_stars(fqn));
    if (constraint == constraints.end()) continue;
    is_any_known = true;
    if (!config.packs_weights) sizes.check_size(tensor, constraint->second);
  }
  if (!is_any_known) return;
  fit.sizes = std::move(sizes).release_contradictions();
  if (!is_complete_folder(c)) return;
  for (const auto& [name, stack] : stacks) {
    if (!has_several_layer_prefixes(stacks, stack)) add_counts(stack, name, fit.counts);
  }
  for (const ModelPart& part : parts) {
    if (auto head = missing_head_of(c, config, part)) fit.missing_head = std::move(head);
  }
}

// The size constraints that config.json gives. Sources, in this order: the hand-written tables, the
// table of its class, and the names that nearly all models share.
struct ConfigConstraintSet {
  std::unique_ptr<ClassConstraints> of_class;
  std::vector<ModelPart> parts;
  bool is_known = false;    // by a table written by hand
  bool is_general = false;  // by nothing but what nearly all models share
};

bool has_any_constrained_tensor(const Checkpoint& c, const std::vector<ModelPart>& parts,
                                Progress* progress) {
  const ConstraintsByName constraints = constraints_by_name(parts);
  if (constraints.empty()) return false;
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    if (constraints.contains(replace_numbers_by_stars(c.fqn(tensor)))) return true;
  }
  return false;
}

ConfigConstraintSet constraining_parts(const Checkpoint& c, const ModelConfig& config,
                                       Progress* progress) {
  ConfigConstraintSet found;
  found.parts = parts_with_known_constraints(config);
  found.is_known = has_any_constrained_tensor(c, found.parts, progress);
  if (!found.is_known) found.parts.clear();
  found.of_class = ClassConstraints::of(config);
  if (found.of_class && !has_any_constrained_tensor(c, {found.of_class->part()}, progress))
    found.of_class.reset();
  if (found.of_class) found.parts.push_back(found.of_class->part());
  found.is_general = found.parts.empty();
  if (found.is_general) found.parts = text_model_without_table(c, config, progress);
  if (auto head = classifier_head_part(config)) found.parts.push_back(std::move(*head));
  return found;
}

void compare_config(const Checkpoint& c, const ModelConfig& config, Progress* progress,
                    ConfigFit& fit) {
  const ConfigConstraintSet constraining = constraining_parts(c, config, progress);
  compare_parts(c, config, constraining.parts, progress, fit);
  if (!constraining.is_known) fit.unknown_model = config.parts.front().model_type;
  if (constraining.is_general) drop_unusual_heads(fit.sizes);
  for (SizeContradiction& one : patch_contradictions(c, config))
    fit.sizes.push_back(std::move(one));
  if (!config.packs_weights) fit.dtypes = mismatched_dtype(c, config.dtype);
}

std::vector<std::int64_t> declared_expert_counts(const ModelConfig& config) {
  std::vector<std::int64_t> counts;
  for (const ConfigPart& part : config.parts) {
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts",
                            "moe_num_experts", "num_routed_experts"}) {
      auto said = part.sizes.find(key);
      if (said != part.sizes.end()) counts.push_back(said->second);
    }
  }
  return counts;
}

// nullopt in the cases in which fit_config() returns nullopt.
std::optional<ModelConfig> config_in_folder(const Checkpoint& c) {
  if (!contains_pretrained(c)) return std::nullopt;
  auto config = read_model_config(*c.directory());
  return config ? std::move(*config) : std::nullopt;
}

}  // namespace

bool is_complete_folder(const Checkpoint& checkpoint) {
  const Checkpoint& c = checkpoint;
  std::vector<std::string_view> used;
  for (const FileRow& file : c.files()) {
    if (!file.referenced) continue;
    if (file.kind != EntryKind::kFile) return false;
    used.push_back(file.path);
  }
  for (const Finding& finding : c.opening_findings()) {
    if (makes_content_unknown(finding)) return false;
  }
  const auto unlisted = c.format().traits.unlisted_files;
  return unlisted == nullptr || unlisted(used).missing.empty();
}

std::optional<ConfigFit> fit_config(const Checkpoint& checkpoint, Progress* progress) {
  if (!contains_pretrained(checkpoint)) return std::nullopt;
  auto config = read_model_config(*checkpoint.directory());
  ConfigFit fit;
  if (config && !*config) {
    if (checkpoint.directory()->stat(kConfigFile).kind != EntryKind::kFile) return std::nullopt;
    fit.unusable = Error{ErrorKind::kDamaged, "it has no model_type", {kConfigFile, {}}};
    return fit;
  }
  if (!config) {
    fit.unusable = std::move(config).error();
    return fit;
  }
  fit.has_own_code = (*config)->has_own_code;
  compare_config(checkpoint, **config, progress, fit);
  return fit;
}

std::vector<ExchangedAxes> exchanged_axes(const Checkpoint& checkpoint, Progress* progress) {
  const auto config = config_in_folder(checkpoint);
  if (!config || config->packs_weights) return {};
  const ConfigConstraintSet constraining = constraining_parts(checkpoint, *config, progress);
  const ConstraintsByName constraints = constraints_by_name(constraining.parts);
  SizeChecks sizes(checkpoint);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    auto constraint = constraints.find(replace_numbers_by_stars(checkpoint.fqn(tensor)));
    if (constraint != constraints.end()) sizes.check_size(tensor, constraint->second);
  }
  std::vector<ExchangedAxes> found = sizes.exchanged();
  for (ExchangedAxes& one : exchanged_experts(checkpoint, *config, progress)) {
    auto own = constraints.find(replace_numbers_by_stars(checkpoint.fqn(one.tensor)));
    const auto said = own == constraints.end()
                          ? std::nullopt
                          : configured_size(*own->second.part, own->second.extents[1]);
    if (!said || said->value != checkpoint.shape(one.tensor)[1]) found.push_back(std::move(one));
  }
  return found;
}

UnmetConfigClaims unmet_config_claims_of_folder(const Checkpoint& checkpoint, Progress* progress) {
  const auto config = config_in_folder(checkpoint);
  if (!config) return {};
  return find_unmet_config_claims(checkpoint, *config, is_complete_folder(checkpoint), progress);
}

std::optional<ConfigNames> names_of_config(const Checkpoint& checkpoint, Progress* progress) {
  const auto config = config_in_folder(checkpoint);
  if (!config || !is_complete_folder(checkpoint)) return std::nullopt;
  return compare_names(checkpoint, *config, progress);
}

std::vector<std::int64_t> expert_counts_of_config(const Checkpoint& checkpoint) {
  if (checkpoint.directory() == nullptr) return {};
  const auto config = read_model_config(*checkpoint.directory());
  return config && *config ? declared_expert_counts(**config) : std::vector<std::int64_t>{};
}

}  // namespace shw
