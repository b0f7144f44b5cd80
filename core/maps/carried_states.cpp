#include "core/maps/carried_states.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/spelling.h"
#include "core/model/state_names.h"

namespace shw {

std::string replace_first_mark(std::string text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), by);
}

namespace {

bool is_master(const std::string& kind) {
  return role_of_kind(kind) == StateRole::kMaster;
}

// True for kinds that have an element per element of the weight.
bool is_elementwise(std::string_view kind) {
  return role_of_kind(kind) != StateRole::kOther || kind == "momentum_buffer";
}

// Name of a state in a program's form, or between two maps if `target` is null.
std::string state_name(const MapStates* target, const std::string& kind,
                       const std::string& weight) {
  if (target == nullptr) return "optimizer.state." + kind + "." + weight;
  const std::string word = is_master(kind) ? target->masters : kind;
  return replace_first_mark(replace_first_mark(target->name, "{state}", word), "{name}", weight);
}

using WeightsByName = std::map<std::string, const MapTensor*>;

// Weights by their bare name; null if two weights have the same.
WeightsByName weights_by_name(std::span<const MapTensor> tensors,
                              std::span<const MapTensor> parameters) {
  WeightsByName weights;
  for (const std::span<const MapTensor> some : {tensors, parameters}) {
    for (const MapTensor& tensor : some) {
      if (parse_state_fqn(tensor.fqn)) continue;
      auto [found, is_new] = weights.emplace(unwrapped_name(tensor.fqn), &tensor);
      if (!is_new) found->second = nullptr;
    }
  }
  return weights;
}

bool can_store_state_kind(const MapStates& target, const std::string& kind) {
  return !target.name.empty() && (!is_master(kind) || !target.masters.empty());
}

bool is_named(const std::vector<std::string>& patterns, const std::string& fqn) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return matches_pattern(pattern, fqn); });
}

// A tied weight has one state, which may be saved under the name of the copy.
void move_states_to_originals(const BoundMap& weights, CarriedStates& states) {
  for (auto& [kind, by_weight] : states.by_kind) {
    for (const auto& [copy, of] : weights.omitted_copies) {
      auto found = by_weight.find(copy);
      if (found == by_weight.end()) continue;
      if (!by_weight.emplace(of, found->second).second)
        states.left_out.push_back({found->second, kind, StateOmissionReason::kSecond});
      by_weight.erase(found);
    }
  }
}

// Renames states to follow the names by which the map reads their weights.
void rename_states_with_weights(const BoundMap& weights, CarriedStates& states) {
  for (auto& [kind, by_weight] : states.by_kind) {
    std::map<std::string, std::string> read;
    for (const auto& [saved, name] : weights.stripped) {
      auto found = by_weight.find(saved);
      if (found == by_weight.end()) continue;
      read.emplace(name, std::move(found->second));
      by_weight.erase(found);
    }
    by_weight.merge(read);
  }
}

std::string strip_written_prefix(const ModelMap& map, MapDirection way, const std::string& name) {
  const bool is_written = way == MapDirection::kForward && name.starts_with(map.written_prefix);
  return is_written ? name.substr(map.written_prefix.size()) : name;
}

// The rows of one kind of state: the rows of its weights, with the names of its states.
class StateRows {
 public:
  StateRows(const ModelMap& map, const MapStates* target, std::string kind,
            const std::map<std::string, std::string>& before)
      : map_(map), target_(target), kind_(std::move(kind)), before_(before) {}

  BoundMap bind(const BoundMap& weights) {
    BoundMap bound;
    bound.way = weights.way;
    for (const BoundRow& row : weights.rows) {
      if (auto states = row_of_states(row, weights.way)) bound.rows.push_back(std::move(*states));
    }
    for (const auto& [weight, state] : before_) {
      if (!taken_.contains(weight)) bound.left_out.push_back(state);
    }
    return bound;
  }

  std::map<std::string, std::string> behind = {};

 private:
  // Replaces weight names by state names; false if a weight has no state.
  bool name_before(std::vector<std::string>& names) const {
    for (std::string& name : names) {
      auto found = before_.find(name);
      if (found == before_.end()) return false;
      name = found->second;
    }
    return true;
  }
  void name_after_map(std::vector<std::string>& names, MapDirection way) {
    for (std::string& name : names) {
      std::string state = state_name(target_, kind_, strip_written_prefix(map_, way, name));
      behind.emplace(name, state);
      name = std::move(state);
    }
  }

  std::optional<BoundRow> row_of_states(const BoundRow& row, MapDirection way) {
    BoundRow states = row;
    const bool is_forward = way == MapDirection::kForward;
    if (!is_forward && !name_before(states.to)) return std::nullopt;
    for (std::vector<std::string>& from : states.from) {
      if (is_forward && !name_before(from)) return std::nullopt;
      if (!is_forward) name_after_map(from, way);
    }
    if (is_forward) name_after_map(states.to, way);
    if (!is_forward) taken_.insert(row.to.begin(), row.to.end());
    for (const auto& from : row.from) {
      if (is_forward) taken_.insert(from.begin(), from.end());
    }
    // The gradient of w is that of 1 + w.
    std::erase_if(states.ops, [&](const BoundOp& op) {
      return op.kind == MapOp::Kind::kCast || (op.kind == MapOp::Kind::kAdd && !is_master(kind_));
    });
    for (BoundOp& op : states.ops) {
      if (op.kind == MapOp::Kind::kPad && !is_master(kind_)) op.value = 0;
    }
    return states;
  }

  const ModelMap& map_;
  const MapStates* target_;
  std::string kind_;
  const std::map<std::string, std::string>& before_;
  std::set<std::string> taken_;  // weights whose state is used
};

// Says why states are left out: the weight has no row, or a part of its row has no state.
void add_left_out(const BoundMap& weights, const std::string& kind,
                  const std::map<std::string, std::string>& by_weight,
                  const std::vector<std::string>& left_out, CarriedStates& states) {
  if (left_out.empty()) return;
  const std::set<std::string> left(left_out.begin(), left_out.end());
  std::set<std::string> with_row;
  for (const BoundRow& row : weights.rows) {
    if (weights.way == MapDirection::kBack) with_row.insert(row.to.begin(), row.to.end());
    if (weights.way == MapDirection::kBack) continue;
    for (const auto& from : row.from) with_row.insert(from.begin(), from.end());
  }
  for (const auto& [weight, state] : by_weight) {
    if (!left.contains(state)) continue;
    states.left_out.push_back({state, kind,
                               with_row.contains(weight) ? StateOmissionReason::kIncomplete
                                                         : StateOmissionReason::kNoWeightInTarget});
  }
}

}  // namespace

MapStates states_for_chosen_forms(const MapStates& states, const ModelFacts& facts) {
  MapStates out = states;
  for (const std::string& form : facts.forms_named_by_user) {
    if (const auto found = states.masters_of_form.find(form);
        found != states.masters_of_form.end()) {
      out.masters = found->second;
      out.needs_masters = states.needs_masters && !out.masters.empty();
    }
    if (const auto found = states.entry_of_form.find(form); found != states.entry_of_form.end())
      out.entries.push_back(found->second);
  }
  return out;
}

CarriedStates find_states(std::span<const MapTensor> tensors, const MapStates& target,
                          const std::vector<std::string>& leave_out,
                          std::span<const MapTensor> parameters) {
  CarriedStates states;
  const WeightsByName weights = weights_by_name(tensors, parameters);
  std::set<std::string> masters;  // weights that have a master
  for (const MapTensor& tensor : tensors) {
    const auto path = parse_state_fqn(tensor.fqn);
    if (!path) continue;
    const std::string kind(path->kind);
    auto leave = [&](StateOmissionReason why) {
      states.left_out.push_back({tensor.fqn, kind, why});
    };
    const auto weight = weights.find(unwrapped_name(path->key));
    if (!can_store_state_kind(target, kind)) {
      leave(StateOmissionReason::kNoPlace);
    } else if (is_named(leave_out, tensor.fqn)) {
      leave(StateOmissionReason::kByOption);
    } else if (!is_elementwise(kind)) {
      leave(StateOmissionReason::kNotElementwise);
    } else if (weight == weights.end() || weight->second == nullptr) {
      leave(StateOmissionReason::kNoWeight);
    } else if (weight->second->shape != tensor.shape) {
      leave(StateOmissionReason::kOtherShape);
    } else if ((is_master(kind) && !masters.insert(weight->first).second) ||
               !states.by_kind[kind].emplace(weight->second->fqn, tensor.fqn).second) {
      leave(StateOmissionReason::kSecond);
    }
  }
  return states;
}

std::vector<BoundMap> bind_states(const ModelMap& map, const BoundMap& weights,
                                  const MapStates* target, CarriedStates& states) {
  std::vector<BoundMap> out;
  rename_states_with_weights(weights, states);
  move_states_to_originals(weights, states);
  for (auto& [kind, by_weight] : states.by_kind) {
    StateRows rows(map, target, kind, by_weight);
    out.push_back(rows.bind(weights));
    add_left_out(weights, kind, by_weight, out.back().left_out, states);
    by_weight = std::move(rows.behind);
  }
  return out;
}

std::vector<ParameterWithStates> parameters_with_moments(const ModelMap& map, MapDirection way,
                                                         const CarriedStates& states) {
  std::set<std::string> weights;
  for (const auto& [kind, by_weight] : states.by_kind) {
    for (const auto& [weight, state] : by_weight) {
      if (!is_master(kind)) weights.insert(weight);
    }
  }
  std::vector<ParameterWithStates> parameters;
  const auto adams = states.by_kind.find("exp_avg");
  for (const std::string& weight : weights) {
    const bool is_adams = adams != states.by_kind.end() && adams->second.contains(weight);
    parameters.push_back({strip_written_prefix(map, way, weight), weight, is_adams});
  }
  return parameters;
}

std::vector<Step> steps_that_make_masters(const ModelMap& map, MapDirection way,
                                          const MapStates& target, CarriedStates& states) {
  if (!target.needs_masters) return {};
  std::set<std::string> with_masters;
  for (const auto& [kind, by_weight] : states.by_kind) {
    for (const auto& [weight, state] : by_weight) {
      if (is_master(kind)) with_masters.insert(weight);
    }
  }
  std::vector<Step> steps;
  Patterns masters;
  for (const auto& [name, weight, is_adams] : parameters_with_moments(map, way, states)) {
    if (with_masters.contains(weight)) continue;
    masters.push_back(state_name(&target, target.masters, name));
    steps.emplace_back(CopyStep{weight, masters.back()});
    states.by_kind[target.masters].emplace(weight, masters.back());
  }
  if (!masters.empty()) steps.emplace_back(CastStep{std::move(masters), Dtype::kFloat32});
  return steps;
}

}  // namespace shw
