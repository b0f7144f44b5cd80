#include "core/verbs/trainer_optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/formats/adam_settings.h"
#include "core/maps/created_settings.h"
#include "core/model/state_names.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/mapped_view.h"
#include "core/verbs/trainer_groups.h"

namespace shw::verbs {
namespace {

// The states of one parameter, by kind: FQNs after the map.
struct StatesOfParameter {
  std::map<std::string, std::string> by_kind = {};
  Extents shape = {};
};

class OptimizerPlan {
 public:
  OptimizerPlan(const Opened& opened, const VerbOptions& said, const MapOptions& mapping,
                Progress* progress)
      : opened_(opened),
        source_(*opened.checkpoint),
        said_(said),
        mapping_(mapping),
        progress_(progress) {}

  Result<ConvertPlan> make() {
    out_.plan = empty_plan_for(opened_);
    out_.plan.format = "torch";
    SHW_CHECK(add_map());
    collect();
    if (states_.empty())
      return fail(ErrorKind::kUsage, "the checkpoint has no optimizer states", {},
                  "`shardwright ls` lists its tensors.");
    SHW_TRY(const std::vector<ParameterNames> groups, find_groups());
    SHW_CHECK(check_groups(groups));
    SHW_CHECK(add_settings(groups));
    SHW_CHECK(add_states(groups));
    add_notes(groups);
    return std::move(out_);
  }

 private:
  // Leads to Hugging Face's names, if the source has those of another program.
  Status add_map() {
    SHW_TRY(ModelFacts facts, facts_of_options());
    tensors_ = tensor_names_and_shapes(source_);
    const std::string scheme = naming_scheme_of(tensors_, facts);
    is_mapped_ = !mapping_.map.empty() || (!scheme.empty() && scheme != "hf");
    if (!is_mapped_) return {};
    SHW_TRY(MappedByOptions made, map_by_options(source_, "hf", mapping_, {said_.leave_out, false},
                                                 nullptr, StatePlaces::kAll));
    SHW_CHECK(check_norm_convention_for_hf(source_, made));
    out_.notes = mapping_notes(made);
    out_.plan.steps = std::move(made.steps.steps);
    tensors_ = std::move(made.steps.tensors);
    return {};
  }
  Result<ModelFacts> facts_of_options() const {
    ModelFacts facts = facts_in_folder(source_);
    SHW_CHECK(add_map_options(mapping_, facts));
    return facts;
  }

  void collect() {
    for (const MapTensor& tensor : tensors_) {
      const auto path = parse_state_fqn(tensor.fqn);
      if (!path) {
        weights_.emplace(unwrapped_name(tensor.fqn), tensor);
      } else if (role_of_kind(path->kind) == StateRole::kMaster) {
        ++masters_;
      } else {
        StatesOfParameter& states = states_[unwrapped_name(path->key)];
        states.by_kind.emplace(path->kind, tensor.fqn);
        if (path->kind != "step") states.shape = tensor.shape;
      }
    }
  }

  Result<std::vector<ParameterNames>> find_groups() {
    ParameterOrder order;
    if (!mapping_.order.empty()) {
      SHW_TRY(order, read_parameter_order(mapping_.order, progress_));
      from_ = mapping_.order;
    } else if (is_mapped_) {
      return fail(ErrorKind::kUsage,
                  "no file records the order of the model's parameters: Trainer numbers them in "
                  "its model's order, and other programs use a different order",
                  {},
                  "Give the order with --order: a text file (.txt) with one name per line, as "
                  "named_parameters() lists them, or a checkpoint that Trainer saved with FSDP.");
    } else {
      SHW_TRY(order, parameter_order_of(source_));
      own_ = named_groups(source_);
      from_ = own_ ? "the checkpoint's own groups" : "the checkpoint's state dict";
    }
    if (order.are_groups) return std::move(order.groups);
    SHW_TRY(const std::vector<MapTensor> parameters,
            parameters_in(order.groups.front(), order.is_state_dict));
    return group_as_trainer(parameters);
  }

  // A state dict has buffers and second names of tied weights too: its names are parameters only
  // if all have states.
  Result<std::vector<MapTensor>> parameters_in(const ParameterNames& names, bool is_state_dict) {
    std::vector<MapTensor> parameters;
    ParameterNames without;
    for (const std::string& name : names) {
      const auto weight = weights_.find(unwrapped_name(name));
      if (is_state_dict && !states_.contains(unwrapped_name(name))) without.push_back(name);
      if (weight == weights_.end()) continue;
      parameters.push_back({name, weight->second.shape});
    }
    if (without.empty()) return parameters;
    return fail(ErrorKind::kUsage,
                fmt::format("{} of the state dict have no states, and it is not known whether they "
                            "are parameters, which Trainer numbers: {}",
                            plural(without.size(), "tensor"), short_list_text(without)),
                {},
                "Give the names of the parameters with --order: a text file (.txt) with one per "
                "line, as named_parameters() lists them.");
  }

  // Checks that names, states and weights belong together, one to one.
  Status check_groups(const std::vector<ParameterNames>& groups) {
    std::set<std::string> named;
    ParameterNames twice, no_weight, other_shape, other_kinds;
    for (const ParameterNames& group : groups) {
      for (const std::string& name : group) {
        const std::string bare = unwrapped_name(name);
        if (!named.insert(bare).second) twice.push_back(name);
        const auto weight = weights_.find(bare);
        const auto states = states_.find(bare);
        if (weight == weights_.end()) no_weight.push_back(name);
        if (states == states_.end()) {
          without_states_.push_back(name);
          continue;
        }
        if (weight != weights_.end() && weight->second.shape != states->second.shape)
          other_shape.push_back(name);
        if (kinds_of(states->second) != kinds_of(states_.begin()->second))
          other_kinds.push_back(name);
      }
    }
    ParameterNames not_named;
    for (const auto& [bare, states] : states_) {
      if (!named.contains(bare)) not_named.push_back(bare);
    }
    SHW_CHECK(refuse(twice, "are listed twice in " + from_));
    SHW_CHECK(refuse(no_weight, "are listed in " + from_ + " and have no weight here"));
    SHW_CHECK(refuse(not_named, "have states and are not listed in " + from_));
    SHW_CHECK(refuse(other_shape, "have states whose shape differs from their weights"));
    return refuse(other_kinds, "have different kinds of states from the first parameter");
  }
  static std::set<std::string> kinds_of(const StatesOfParameter& states) {
    std::set<std::string> kinds;
    for (const auto& [kind, fqn] : states.by_kind) kinds.insert(kind);
    return kinds;
  }
  static Status refuse(const ParameterNames& names, const std::string& why) {
    if (names.empty()) return {};
    return fail(ErrorKind::kUsage, fmt::format("{} {}: {}", plural(names.size(), "parameter"), why,
                                               short_list_text(names)));
  }

  // Makes param_groups: the saved values if the groups are the checkpoint's own, else those of
  // AdamW with the settings that the source has for all.
  Status add_settings(const std::vector<ParameterNames>& groups) {
    const auto adam = adam_settings(source_);
    has_steps_ = own_ && states_.begin()->second.by_kind.contains("step");
    if (!adam && !own_)
      return fail(ErrorKind::kUsage,
                  "step count and optimizer settings are not known: the source has none, they "
                  "differ between parameters, or they are not AdamW's");
    if (adam) steps_ = adam->step;
    std::int64_t next = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      std::vector<std::int64_t> numbers(groups[g].size());
      for (std::int64_t& number : numbers) number = next++;
      const std::string group = fmt::format("param_groups.{}.", g);
      if (own_) {
        keep_settings(own_->prefix + std::to_string(g) + ".", group);
      } else {
        const bool decays = groups.size() == 1 || g == 0;
        for (const auto& [setting, value] : adamw_settings(*adam, decays ? adam->weight_decay : 0))
          create(group + setting, value);
      }
      create(group + "params", std::move(numbers));
    }
    return {};
  }
  void create(std::string entry, EntryValue value) {
    created_.emplace_back(CreateEntriesStep{{std::move(entry)}, std::move(value)});
  }
  void keep_settings(const std::string& before, const std::string& after) {
    for (const NonTensorEntry& object : source_.objects()) {
      if (!object.fqn.starts_with(before)) continue;
      const std::string setting = object.fqn.substr(before.size());
      if (setting == "params" || setting == "param_names") continue;
      created_.emplace_back(RenameStep{object.fqn, after + setting});
      kept_.insert(object.fqn);
    }
  }

  // Renames states, makes steps where the source has their number once, and drops the rest.
  Status add_states(const std::vector<ParameterNames>& groups) {
    std::vector<Step> renames;
    std::vector<std::string> steps;
    std::size_t number = 0;
    for (const ParameterNames& group : groups) {
      for (const std::string& name : group) {
        const std::string before = fmt::format("state.{}.", number++);
        const auto states = states_.find(unwrapped_name(name));
        if (states == states_.end()) continue;
        for (const auto& [kind, fqn] : states->second.by_kind) {
          if (kind == "step" && !has_steps_) continue;
          kept_.insert(fqn);
          renames.emplace_back(RenameStep{fqn, before + kind});
        }
        if (!has_steps_ && states->second.by_kind.contains("exp_avg"))
          steps.push_back(before + "step");
      }
    }
    if (!steps.empty() && !steps_)
      return fail(ErrorKind::kUsage, "the number of the optimizer's steps is not known");
    drop_others();
    append(std::move(renames));
    if (!steps.empty())
      out_.plan.steps.emplace_back(
          CreateTensorsStep{std::move(steps), Dtype::kFloat32, {}, *steps_});
    append(std::move(created_));
    return {};
  }
  void drop_others() {
    Patterns others;
    for (const MapTensor& tensor : tensors_) {
      if (!kept_.contains(tensor.fqn)) others.push_back(tensor.fqn);
    }
    // The steps of a map drop entries that are not tensors.
    for (const NonTensorEntry& object : source_.objects()) {
      if (!is_mapped_ && !kept_.contains(object.fqn)) others.push_back(object.fqn);
    }
    if (!others.empty()) out_.plan.steps.emplace_back(DropStep{std::move(others)});
  }
  void append(std::vector<Step> steps) {
    std::move(steps.begin(), steps.end(), std::back_inserter(out_.plan.steps));
  }

  void add_notes(const std::vector<ParameterNames>& groups) {
    std::size_t parameters = 0;
    std::string sizes;
    for (const ParameterNames& group : groups) {
      parameters += group.size();
      sizes += (sizes.empty() ? "" : " and ") + std::to_string(group.size());
    }
    out_.notes.push_back(fmt::format("optimizer.pt: {} in groups of {}, in the order of {}",
                                     plural(parameters, "parameter"), sizes, from_));
    if (!without_states_.empty())
      out_.notes.push_back(fmt::format("{} no states, so they start fresh: {}",
                                       plural(without_states_.size(), "parameter") +
                                           (without_states_.size() == 1 ? " has" : " have"),
                                       short_list_text(without_states_)));
    if (masters_ != 0)
      out_.notes.push_back(
          fmt::format("left out: master weights of {}: Trainer does not store them",
                      plural(masters_, "parameter")));
    out_.notes.push_back(
        "weights are not in optimizer.pt: --to hf or --to safetensors writes them; to resume, "
        "Trainer needs both in one folder, with trainer_state.json and scheduler.pt");
  }

  const Opened& opened_;
  const Checkpoint& source_;
  const VerbOptions& said_;
  const MapOptions& mapping_;
  Progress* progress_;
  ConvertPlan out_;
  bool is_mapped_ = false;
  bool has_steps_ = false;  // the saved steps are kept
  std::optional<double> steps_;
  std::vector<MapTensor> tensors_;                   // after the map
  std::map<std::string, MapTensor> weights_;         // by bare name
  std::map<std::string, StatesOfParameter> states_;  // by bare name
  std::size_t masters_ = 0;
  std::optional<NamedGroups> own_;
  std::string from_;
  ParameterNames without_states_;
  std::vector<Step> created_;
  std::set<std::string> kept_;  // FQNs before the renames
};

}  // namespace

Result<ConvertPlan> plan_trainer_optimizer(const Opened& opened, const VerbOptions& said,
                                           const MapOptions& mapping, Progress* progress) {
  SHW_CHECK(check_options_of_map(said));
  if (said.weights_only)
    return fail(ErrorKind::kUsage, "--weights-only and --to optimizer leave nothing to write");
  return OptimizerPlan(opened, said, mapping, progress).make();
}

}  // namespace shw::verbs
