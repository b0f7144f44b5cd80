#include "core/maps/created_settings.h"

#include <map>
#include <set>
#include <utility>

namespace shw {

// Names of torch's AdamW. `initial_lr` is added by its schedulers.
std::vector<std::pair<const char*, EntryValue>> adamw_settings(const AdamSettings& adam,
                                                               double weight_decay) {
  return {{"lr", adam.lr},
          {"initial_lr", adam.lr},
          {"betas", std::vector{adam.beta1, adam.beta2}},
          {"eps", adam.eps},
          {"weight_decay", weight_decay},
          {"amsgrad", false},
          {"maximize", false},
          {"foreach", std::monostate()},
          {"capturable", false},
          {"differentiable", false},
          {"fused", std::monostate()},
          {"decoupled_weight_decay", true}};
}

namespace {

using Settings = std::vector<std::pair<const char*, EntryValue>>;

struct GroupKind {
  bool decays = true, is_expert = false;
  auto operator<=>(const GroupKind&) const = default;
};

Settings megatron_settings(const AdamSettings& adam, const GroupKind& kind) {
  Settings settings = adamw_settings(adam, kind.decays ? adam.weight_decay : 0);
  const Settings more = {{"wd_mult", kind.decays ? 1.0 : 0.0},
                         {"lr_mult", 1.0},
                         {"is_expert_parallel", kind.is_expert},
                         {"is_decoupled_lr", false},
                         {"default_config", true},
                         {"bias_correction", true},
                         {"step", adam.step}};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// Gate and up, which are saved apart, are one parameter of Megatron-FSDP's groups.
std::string without_gated_half_suffix(const std::string& name) {
  const bool is_half = name.ends_with("_w") || name.ends_with("_v");
  const bool is_fc1 = name.find(".linear_fc1.") != std::string::npos;
  return is_half && is_fc1 ? name.substr(0, name.size() - 2) : name;
}

class CreatedSettings {
 public:
  CreatedSettings(const MappedSteps& mapped, const AdamSettings& adam)
      : names_(mapped.state_names), adam_(adam) {
    for (const MapTensor& tensor : mapped.tensors) ndim_[tensor.fqn] = tensor.shape.size();
    for (const ParameterWithStates& parameter : mapped.with_moments) {
      if (parameter.is_adams) add(parameter);
    }
  }

  std::vector<Step> steps() const {
    std::vector<Step> out;
    if (!steps_.empty())
      out.emplace_back(CreateTensorsStep{steps_, Dtype::kFloat32, {}, adam_.step});
    if (!names_.entries.empty()) out.emplace_back(CreateEntriesStep{names_.entries, adam_.step});
    for (const auto& [kind, names] : groups_) {
      const Settings settings = names_.megatron_groups ? megatron_settings(adam_, kind)
                                                       : adamw_settings(adam_, adam_.weight_decay);
      for (const auto& [setting, value] : settings) {
        CreateEntriesStep step{{}, value};
        for (const std::string& name : names)
          step.entries.push_back(replace_first_mark(
              replace_first_mark(names_.settings, "{setting}", setting), "{name}", name));
        out.emplace_back(std::move(step));
      }
    }
    return out;
  }

 private:
  void add(const ParameterWithStates& parameter) {
    const std::string& name = parameter.name;
    if (!names_.step.empty()) steps_.push_back(replace_first_mark(names_.step, "{name}", name));
    if (names_.settings.empty()) return;
    if (!names_.megatron_groups) {
      groups_[{}].insert(name);
      return;
    }
    const auto ndim = ndim_.find(parameter.weight);
    const bool is_vector = ndim != ndim_.end() && ndim->second == 1;
    groups_[{.decays = !is_vector && !name.ends_with(".bias"),
             .is_expert = name.find(".experts.") != std::string::npos}]
        .insert(without_gated_half_suffix(name));
  }

  const MapStates& names_;
  const AdamSettings& adam_;
  std::map<std::string, std::size_t> ndim_;  // by FQN of the weight
  std::vector<std::string> steps_;
  std::map<GroupKind, std::set<std::string>> groups_;
};

}  // namespace

std::vector<Step> create_settings(const MappedSteps& mapped, const AdamSettings& settings) {
  return CreatedSettings(mapped, settings).steps();
}

}  // namespace shw
