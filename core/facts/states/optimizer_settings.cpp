#include "core/facts/states/optimizer_settings.h"

#include <algorithm>
#include <array>

#include "core/base/little_endian.h"
#include "core/base/parse_text.h"
#include "core/formats/items/items.h"
#include "core/model/state_names.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxEntry = std::uint64_t{16} << 20, kMaxEntries = std::uint64_t{256} << 20;

struct GroupPath {
  std::string_view prefix;  // "optimizer."
  std::string_view group;   // "0", "layers.0.weight"; empty: the whole list
  std::string_view kind;    // "betas"
};

// Requires "param_groups" or "param_to_group_meta" among the first three parts.
std::optional<GroupPath> parse_group_fqn(std::string_view fqn) {
  std::size_t at = 0;
  for (int depth = 0; depth < 4; ++depth) {
    std::size_t dot = fqn.find('.', at);
    std::string_view part = fqn.substr(at, dot == std::string_view::npos ? dot : dot - at);
    if (part == "param_groups" || part == "param_to_group_meta") {
      GroupPath path{fqn.substr(0, at), {}, {}};
      if (dot == std::string_view::npos) return path;
      std::string_view rest = fqn.substr(dot + 1);
      std::size_t last = rest.rfind('.');
      if (last == std::string_view::npos) return std::nullopt;
      path.group = rest.substr(0, last);
      path.kind = rest.substr(last + 1);
      return path;
    }
    if (dot == std::string_view::npos) return std::nullopt;
    at = dot + 1;
  }
  return std::nullopt;
}

std::vector<std::string> params_in(const PlainValue& list) {
  std::vector<std::string> out;
  for (const PlainValue& item : list.items) {
    if (item.kind == PlainValue::Kind::kText) {
      out.push_back(unwrapped_name(item.text));
    } else if (item.kind == PlainValue::Kind::kNumber && item.number >= 0 && item.number < 1e9) {
      out.push_back(std::to_string(static_cast<std::int64_t>(item.number)));
    }
  }
  return out;
}

std::optional<double> number_in(const PlainValue& value) {
  if (value.kind == PlainValue::Kind::kNumber) return value.number;
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Checkpoint& checkpoint, const Progress* progress)
      : c_(checkpoint), progress_(progress) {}
  OptimizerSettings run();

 private:
  struct Draft {
    SavedOptimizer optimizer;
    std::map<std::uint32_t, ParamGroup> numbered;
    std::map<std::string, ParamGroup> named;  // by parameter name without wrappers
  };

  Draft& draft(std::string_view prefix) { return drafts_[std::string(prefix)]; }
  std::optional<PlainValue> read(std::size_t object);
  std::optional<double> read_number(TensorId tensor) const;
  void add_object(std::size_t object);
  void add_tensor(TensorId tensor);
  void add_value(const GroupPath& path, const std::string& fqn, std::size_t object,
                 PlainValue value);
  void add_list(const GroupPath& path, const std::string& fqn, const PlainValue& list);
  static SavedOptimizer finish(Draft draft);

  const Checkpoint& c_;
  const Progress* progress_;
  std::map<std::string, Draft> drafts_;
  std::uint64_t left_ = kMaxEntries;
  std::int64_t left_out_ = 0;
};

std::optional<PlainValue> Reader::read(std::size_t object) {
  const auto& item = c_.objects()[object].item;
  auto length = item ? static_cast<std::uint64_t>(std::max<std::int64_t>(item->length, 0)) : 0;
  if (length > left_) {
    ++left_out_;
    return std::nullopt;
  }
  left_ -= length;
  auto value = read_plain_value(c_, object, kMaxEntry);
  if (value) return std::move(*value);
  ++left_out_;
  return std::nullopt;
}

// Reads a tensor with a single number.
std::optional<double> Reader::read_number(TensorId tensor) const {
  if (volume(c_.shape(tensor)) != 1 || c_.chunks(tensor).size() != 1) return std::nullopt;
  auto bytes = read_chunk(c_, c_.chunks(tensor)[0]);
  if (!bytes || bytes->size() != size_of(c_.dtype(tensor))) return std::nullopt;
  if (c_.dtype(tensor) == Dtype::kInt64)
    return static_cast<double>(load_little<std::int64_t>(*bytes));
  if (c_.dtype(tensor) == Dtype::kInt32) return load_little<std::int32_t>(*bytes);
  auto real = cast_elements(c_.dtype(tensor), *bytes, Dtype::kFloat64);
  if (!real) return std::nullopt;
  return load_little<double>(*real);
}

void Reader::add_list(const GroupPath& path, const std::string& fqn, const PlainValue& list) {
  for (std::uint32_t i = 0; i < list.items.size(); ++i) {
    const PlainValue& dict = list.items[i];
    if (dict.kind != PlainValue::Kind::kDict) continue;
    ParamGroup& group = draft(path.prefix).numbered[i];
    for (std::size_t k = 0; k + 1 < dict.items.size(); k += 2) {
      const std::string& key = dict.items[k].text;
      const PlainValue& value = dict.items[k + 1];
      if (key == "params") {
        group.params = params_in(value);
        group.lists_params = value.kind == PlainValue::Kind::kList;
      } else if (key == "step") {
        group.step = SavedStep{fqn, std::nullopt, std::nullopt, number_in(value)};
      } else if (!key.empty()) {
        group.values[key] = value;
      }
    }
  }
}

void Reader::add_value(const GroupPath& path, const std::string& fqn, std::size_t object,
                       PlainValue value) {
  auto number = parse_number<std::uint32_t>(path.group);
  Draft& of = draft(path.prefix);
  ParamGroup& group = number ? of.numbered[*number] : of.named[unwrapped_name(path.group)];
  if (path.kind == "params") {
    group.params = params_in(value);
    group.lists_params = value.kind == PlainValue::Kind::kList;
  } else if (path.kind == "step") {
    bool says = value.kind == PlainValue::Kind::kNumber || value.kind == PlainValue::Kind::kNone;
    if (says) group.step = SavedStep{fqn, std::nullopt, object, number_in(value)};
  } else {
    group.values[std::string(path.kind)] = std::move(value);
  }
}

void Reader::add_object(std::size_t object) {
  const std::string& fqn = c_.objects()[object].fqn;
  if (auto path = parse_group_fqn(fqn)) {
    auto value = read(object);
    if (!value) return;
    if (path->group.empty()) {
      add_list(*path, fqn, *value);
    } else {
      add_value(*path, fqn, object, std::move(*value));
    }
    return;
  }
  auto state = parse_state_fqn(fqn);
  auto prefix = optimizer_prefix(fqn);
  if (!state || !prefix || state->kind != "step") return;
  auto value = read(object);
  if (!value ||
      (value->kind != PlainValue::Kind::kNumber && value->kind != PlainValue::Kind::kNone))
    return;
  draft(*prefix).optimizer.steps[unwrapped_name(state->key)] =
      SavedStep{fqn, std::nullopt, object, number_in(*value)};
}

void Reader::add_tensor(TensorId tensor) {
  std::string fqn(c_.fqn(tensor));
  if (auto path = parse_group_fqn(fqn); path && path->kind == "step") {
    auto number = parse_number<std::uint32_t>(path->group);
    auto step = read_number(tensor);
    if (!step) return;
    Draft& of = draft(path->prefix);
    ParamGroup& group = number ? of.numbered[*number] : of.named[unwrapped_name(path->group)];
    group.step = SavedStep{fqn, tensor, std::nullopt, step};
    return;
  }
  auto state = parse_state_fqn(fqn);
  auto prefix = optimizer_prefix(fqn);
  if (!state || !prefix) return;
  std::string key = unwrapped_name(state->key);
  draft(*prefix).optimizer.keys.insert(key);
  if (state->kind != "step") return;
  if (auto step = read_number(tensor))
    draft(*prefix).optimizer.steps[key] = SavedStep{fqn, tensor, std::nullopt, step};
}

SavedOptimizer Reader::finish(Draft draft) {
  SavedOptimizer out = std::move(draft.optimizer);
  for (auto& [number, group] : draft.numbered) {
    group.name = std::to_string(number);
    out.groups.push_back(std::move(group));
  }
  out.by_parameter = out.groups.empty() && !draft.named.empty();
  for (auto& [name, group] : draft.named) {
    if (out.by_parameter && !out.keys.contains(name) && group.values.contains("lr"))
      out.without_states.push_back(name);
    // Skips values such as "0.scheduler", which belong to no parameter.
    if (!out.by_parameter || !out.keys.contains(name)) continue;
    group.name = name;
    group.params = {name};
    group.lists_params = true;
    out.groups.push_back(std::move(group));
  }
  for (std::size_t g = 0; g < out.groups.size(); ++g) {
    for (const std::string& param : out.groups[g].params) out.group_of.try_emplace(param, g);
  }
  return out;
}

OptimizerSettings Reader::run() {
  OptimizerSettings out;
  if (c_.directory() == nullptr) return out;
  for (std::size_t i = 0; i < c_.objects().size() && !is_cancelled(progress_); ++i) add_object(i);
  for (TensorId tensor : cancellable_range(c_.tensors(), progress_)) add_tensor(tensor);
  for (auto& [prefix, draft] : cancellable_range(drafts_, progress_)) {
    SavedOptimizer optimizer = finish(std::move(draft));
    optimizer.prefix = prefix;
    out.optimizers.push_back(std::move(optimizer));
  }
  out.left_out = left_out_;
  return out;
}

}  // namespace

std::optional<std::string> optimizer_prefix(std::string_view fqn) {
  auto path = parse_state_fqn(fqn);
  if (!path) return std::nullopt;
  const char* first = std::min(path->key.data(), path->kind.data());
  auto before = static_cast<std::size_t>(first - fqn.data());
  constexpr std::string_view kState = "state.";
  if (before < kState.size()) return std::nullopt;
  return std::string(fqn.substr(0, before - kState.size()));
}

OptimizerSettings read_optimizer_settings(const Checkpoint& checkpoint, const Progress* progress) {
  return Reader(checkpoint, progress).run();
}

std::optional<Betas> betas_of(const ParamGroup& group) {
  auto found = group.values.find("betas");
  if (found == group.values.end() || found->second.items.size() < 2) return std::nullopt;
  auto first = number_in(found->second.items[0]), second = number_in(found->second.items[1]);
  bool possible = first && second && *first >= 0 && *first < 1 && *second > 0 && *second < 1;
  if (!possible) return std::nullopt;
  return Betas{*first, *second};
}

namespace {

const ParamGroup* group_of_parameter(const SavedOptimizer& optimizer, std::string_view key) {
  auto found = optimizer.group_of.find(unwrapped_name(key));
  if (found != optimizer.group_of.end()) return &optimizer.groups[found->second];
  // A parameter that no group lists belongs to the only group, if there is just one.
  return optimizer.groups.size() == 1 ? &optimizer.groups.front() : nullptr;
}

// Settings that torch.optim.Adam and AdamW, FusedAdam of Apex and TransformerEngine, schedulers and
// Megatron store in a group.
bool is_known_group_value(std::string_view name) {
  constexpr std::array<std::string_view, 33> kKnown = {"lr",
                                                       "betas",
                                                       "eps",
                                                       "weight_decay",
                                                       "amsgrad",
                                                       "maximize",
                                                       "foreach",
                                                       "capturable",
                                                       "fused",
                                                       "params",
                                                       "param_names",
                                                       "differentiable",
                                                       "initial_lr",
                                                       "max_lr",
                                                       "min_lr",
                                                       "decoupled_weight_decay",
                                                       "base_momentum",
                                                       "max_momentum",
                                                       "step",
                                                       "bias_correction",
                                                       "wd_mult",
                                                       "lr_mult",
                                                       "pre_wd_mult",
                                                       "pre_lr_mult",
                                                       "start_wd",
                                                       "end_wd",
                                                       "name",
                                                       "is_expert_parallel",
                                                       "is_decoupled_lr",
                                                       "default_config",
                                                       "group_name",
                                                       "is_expert",
                                                       "is_vision_model_param"};
  return std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end();
}

}  // namespace

std::optional<Betas> betas_of(const SavedOptimizer& optimizer, std::string_view key) {
  const ParamGroup* group = group_of_parameter(optimizer, key);
  return group == nullptr ? std::nullopt : betas_of(*group);
}

bool is_adams(const SavedOptimizer& optimizer, std::string_view key) {
  const ParamGroup* group = group_of_parameter(optimizer, key);
  if (group == nullptr || !group->values.contains("betas")) return false;
  const bool is_named =
      group->values.contains("amsgrad") || group->values.contains("bias_correction");
  return is_named && std::all_of(group->values.begin(), group->values.end(), [](const auto& value) {
           return is_known_group_value(value.first);
         });
}

const SavedOptimizer* find_optimizer(const OptimizerSettings& settings, std::string_view prefix) {
  for (const SavedOptimizer& optimizer : settings.optimizers) {
    if (optimizer.prefix == prefix) return &optimizer;
  }
  return nullptr;
}

}  // namespace shw
