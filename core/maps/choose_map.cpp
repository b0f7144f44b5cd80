#include "core/maps/choose_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/spelling.h"
#include "core/base/words.h"
#include "core/maps/built_in_maps.h"
#include "core/maps/map_steps.h"
#include "core/maps/optimizer_parameters.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

// A map with its direction.
struct DirectedMap {
  const ModelMap* map = nullptr;
  MapDirection way = MapDirection::kForward;
};

const std::string& source_scheme(const DirectedMap& leg) {
  return leg.way == MapDirection::kForward ? leg.map->from : leg.map->to;
}
const std::string& target_scheme(const DirectedMap& leg) {
  return leg.way == MapDirection::kForward ? leg.map->to : leg.map->from;
}

std::vector<DirectedMap> directions_of_built_in_maps() {
  std::vector<DirectedMap> out;
  for (const ModelMap& map : built_in_maps()) {
    out.push_back({&map, MapDirection::kForward});
    out.push_back({&map, MapDirection::kBack});
  }
  return out;
}

tl::unexpected<Error> no_map_error(const std::string& from, const std::string& to) {
  if (from == to && from == "hf")
    return fail(ErrorKind::kUsage, "its tensors have the names of Hugging Face already", {},
                "Write it as safetensors: --to safetensors --weights-only, with --strip PREFIX if "
                "names begin with one, and --config FOLDER for config.json and the tokenizer.");
  if (from == to && !from.empty())
    return fail(ErrorKind::kUsage, fmt::format("its tensors have the names of {} already", to), {},
                "To write the same names in another format, name that: --to dcp or safetensors.");
  return fail(ErrorKind::kUsage,
              from.empty() ? "its tensor names match no program with a known map"
                           : fmt::format("no map is known from {} to {}", from, to),
              {}, "give a map with --map FILE; docs/maps.md describes the format");
}

// The maps that lead from one world to another.
Result<std::vector<DirectedMap>> find_map_path(const std::string& from, const std::string& to) {
  for (const DirectedMap& leg : directions_of_built_in_maps()) {
    if (source_scheme(leg) == from && target_scheme(leg) == to)
      return std::vector<DirectedMap>{leg};
  }
  for (const DirectedMap& first : directions_of_built_in_maps()) {
    for (const DirectedMap& second : directions_of_built_in_maps()) {
      if (source_scheme(first) == from && target_scheme(first) == source_scheme(second) &&
          target_scheme(second) == to)
        return std::vector<DirectedMap>{first, second};
    }
  }
  return no_map_error(from, to);
}

// The direction of a map in which more names have rows.
Result<DirectedMap> choose_direction(const ModelMap& map, const std::string& to,
                                     std::span<const MapTensor> tensors, const ModelFacts& facts) {
  if (to == map.to) return DirectedMap{&map, MapDirection::kForward};
  if (to == map.from) return DirectedMap{&map, MapDirection::kBack};
  if (!to.empty())
    return fail(ErrorKind::kUsage, fmt::format("the map {} is between {} and {}, not {}", map.name,
                                               map.from, map.to, to));
  const MapFit forward = measure_map_fit(map, MapDirection::kForward, tensors, facts);
  const MapFit back = measure_map_fit(map, MapDirection::kBack, tensors, facts);
  return DirectedMap{&map, forward >= back ? MapDirection::kForward : MapDirection::kBack};
}

// True if scales of quantised weights exist.
bool are_quantised(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with("_scales") || name.ends_with("_scale_inv") || name.ends_with("_scale");
  });
}

bool is_of_optimizer(const std::string& name) {
  return name.substr(0, name.find('.')).find("optim") != std::string::npos;
}

// Names of tensors that no row converts, and that nothing says to leave out.
std::vector<std::string> unknown_tensors(const BoundMap& bound,
                                         const std::vector<std::string>& leave_out,
                                         const CarriedStates& states) {
  std::set<std::string> of_optimizer;
  for (const OmittedState& state : states.left_out) {
    if (is_of_optimizer(state.fqn)) of_optimizer.insert(state.fqn);
  }
  std::vector<std::string> names;
  for (const std::string& name : bound.without_row) {
    const bool is_named =
        std::any_of(leave_out.begin(), leave_out.end(),
                    [&](const std::string& one) { return matches_pattern(one, name); });
    if (!is_named && !of_optimizer.contains(name)) names.push_back(name);
  }
  return names;
}

Status check_all_have_rows(const DirectedMap& leg, const BoundMap& bound,
                           const std::vector<std::string>& leave_out, const CarriedStates& states) {
  const std::vector<std::string> names = unknown_tensors(bound, leave_out, states);
  if (bound.rows.empty())
    return fail(ErrorKind::kUsage, fmt::format("no tensor has a row in the map {}", leg.map->name));
  if (names.empty()) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("{} of {} have no row in the map {}: {}", plural(names.size(), "tensor"),
                          leg.way == MapDirection::kForward ? leg.map->from : leg.map->to,
                          leg.map->name, short_list_text(names)),
              {},
              are_quantised(names)
                  ? "decode its weights: open PATH/@dequantised instead of PATH"
                  : "add rows with --map FILE, or leave them out by name with --leave-out PATTERN");
}

void append(std::vector<Step> steps, MappedSteps& out) {
  out.steps.insert(out.steps.end(), std::make_move_iterator(steps.begin()),
                   std::make_move_iterator(steps.end()));
}

Status apply_directed_map(const DirectedMap& leg, const ModelFacts& facts,
                          const std::vector<std::string>& objects,
                          const std::vector<std::string>& leave_out, const CarriedStates& states,
                          MappedSteps& out) {
  SHW_TRY(BoundMap bound, bind_map(*leg.map, leg.way, out.tensors, facts));
  SHW_CHECK(check_all_have_rows(leg, bound, leave_out, states));
  bound.left_out.insert(bound.left_out.end(), bound.without_row.begin(), bound.without_row.end());
  append(steps_of(bound, objects, out.steps.size()), out);
  out.tensors = tensors_after(bound);
  out.maps.push_back(leg.map->name);
  out.left_out.insert(out.left_out.end(), bound.left_out.begin(), bound.left_out.end());
  out.to = target_scheme(leg);
  out.bound.push_back(std::move(bound));
  return {};
}

MapSide source_side(const DirectedMap& leg) {
  return leg.way == MapDirection::kForward ? MapSide::kFrom : MapSide::kTo;
}
MapSide target_side(const DirectedMap& leg) {
  return leg.way == MapDirection::kForward ? MapSide::kTo : MapSide::kFrom;
}
MapStates target_states(const DirectedMap& leg, const ModelFacts& facts) {
  return states_for_chosen_forms(
      target_side(leg) == MapSide::kTo ? leg.map->to_states : leg.map->from_states, facts);
}

// The same names, and others where the program has no place.
MapStates with_place_for_all(MapStates states) {
  if (states.name.empty()) states.name = "optimizer.state.{name}.{state}";
  if (states.masters.empty()) states.masters = "master_param";
  states.needs_masters = false;
  return states;
}

// Adds the states of bound weights. Without `target` they get intermediate names. Returns the
// resulting tensors.
std::vector<MapTensor> add_states(const ModelMap& map, const BoundMap& weights,
                                  const MapStates* target, CarriedStates& states,
                                  MappedSteps& out) {
  std::vector<MapTensor> made;
  for (BoundMap& bound : bind_states(map, weights, target, states)) {
    append(steps_of(bound, {}, out.steps.size()), out);
    std::vector<MapTensor> tensors = tensors_after(bound);
    made.insert(made.end(), tensors.begin(), tensors.end());
    out.left_out.insert(out.left_out.end(), bound.left_out.begin(), bound.left_out.end());
    out.of_states.push_back(std::move(bound));
  }
  return made;
}

// Adds the states of the last leg under the program's own names.
Result<std::vector<MapTensor>> add_last_states(const DirectedMap& leg, const MapStates& target,
                                               const ModelFacts& facts, CarriedStates& states,
                                               MappedSteps& out) {
  std::optional<BoundMap> parameters;
  if (!states.by_kind.empty()) {
    SHW_TRY(parameters, bind_parameters(*leg.map, target_side(leg), MapDirection::kForward,
                                        out.tensors, facts));
  }
  if (!parameters) return add_states(*leg.map, out.bound.back(), &target, states, out);
  add_states(*leg.map, out.bound.back(), nullptr, states, out);
  return add_states(*leg.map, *parameters, &target, states, out);
}

// Adds master weights if the program needs them, and counts the states of each kind.
void finish_states(const DirectedMap& last, MapStates target, CarriedStates& states,
                   std::vector<MapTensor> made, MappedSteps& out) {
  std::map<std::string, const MapTensor*> weights;
  for (const MapTensor& tensor : out.tensors) weights.emplace(tensor.fqn, &tensor);
  std::vector<Step> masters = steps_that_make_masters(*last.map, last.way, target, states);
  for (const Step& step : masters) {
    const auto* copy = std::get_if<CopyStep>(&step);
    if (copy == nullptr) continue;
    made.push_back({copy->to, weights.at(copy->from)->shape});
    ++out.created_master_count;
  }
  append(std::move(masters), out);
  out.with_moments = parameters_with_moments(*last.map, last.way, states);
  for (const auto& [kind, by_weight] : states.by_kind) {
    const bool is_master = role_of_kind(kind) == StateRole::kMaster;
    if (!by_weight.empty()) out.states[is_master ? target.masters : kind] += by_weight.size();
  }
  out.state_names = std::move(target);
  out.tensors.insert(out.tensors.end(), std::make_move_iterator(made.begin()),
                     std::make_move_iterator(made.end()));
}

// Removes the converted states from the tensors, so that weights remain.
void remove_converted_states(const CarriedStates& states, std::vector<MapTensor>& tensors) {
  std::set<std::string> carried;
  for (const auto& [kind, by_weight] : states.by_kind) {
    for (const auto& [weight, state] : by_weight) carried.insert(state);
  }
  std::erase_if(tensors, [&](const MapTensor& tensor) { return carried.contains(tensor.fqn); });
}

}  // namespace

std::vector<MapTensor> tensor_names_and_shapes(const Checkpoint& checkpoint) {
  std::vector<MapTensor> out;
  out.reserve(checkpoint.tensor_count());
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    out.push_back(
        {std::string(checkpoint.fqn(TensorId{t})), copy_of(checkpoint.shape(TensorId{t}))});
  return out;
}

std::string naming_scheme_of(std::span<const MapTensor> tensors, const ModelFacts& facts) {
  std::string best;
  MapFit most;
  const ReadTensors plain = read_tensors(tensors, {});
  for (const DirectedMap& leg : directions_of_built_in_maps()) {
    const MapFit fit = measure_map_fit(*leg.map, leg.way, tensors, plain, facts);
    if (fit.tensors == 0 || !(fit > most)) continue;
    most = fit;
    best = source_scheme(leg);
  }
  return best;
}

std::vector<std::string> naming_schemes() {
  std::set<std::string> worlds;
  for (const ModelMap& map : built_in_maps()) worlds.insert({map.from, map.to});
  return {worlds.begin(), worlds.end()};
}

Result<MappedSteps> mapped_steps(const Checkpoint& checkpoint, const ModelMap* map,
                                 const std::string& to, const ModelFacts& facts,
                                 const ConversionExclusions& leave_out, StatePlaces places) {
  MappedSteps out;
  out.tensors = tensor_names_and_shapes(checkpoint);
  std::vector<DirectedMap> legs;
  if (map != nullptr) {
    SHW_TRY(DirectedMap leg, choose_direction(*map, to, out.tensors, facts));
    legs.push_back(leg);
  } else {
    const std::string from = naming_scheme_of(out.tensors, facts);
    if (from.empty() || from == to) return no_map_error(from, to);
    SHW_TRY(legs, find_map_path(from, to));
  }
  out.from = source_scheme(legs.front());
  std::vector<std::string> objects;
  for (const NonTensorEntry& object : checkpoint.objects()) {
    objects.push_back(object.fqn);
    if (is_of_optimizer(object.fqn)) out.omitted_entries.push_back(object.fqn);
  }
  MapStates target = target_states(legs.back(), facts);
  if (places == StatePlaces::kAll) target = with_place_for_all(std::move(target));
  CarriedStates states;
  std::optional<BoundMap> parameters;
  if (!leave_out.states) {
    if (!target.name.empty()) {
      SHW_TRY(parameters, bind_parameters(*legs.front().map, source_side(legs.front()),
                                          MapDirection::kBack, out.tensors, facts));
    }
    states = find_states(out.tensors, target, leave_out.patterns,
                         parameters ? joined_parameters(*parameters) : std::vector<MapTensor>());
  }
  remove_converted_states(states, out.tensors);
  std::vector<MapTensor> of_states;
  for (const DirectedMap& leg : legs) {
    SHW_CHECK(apply_directed_map(leg, facts, objects, leave_out.patterns, states, out));
    if (parameters) add_states(*leg.map, *parameters, nullptr, states, out);
    parameters.reset();
    if (&leg != &legs.back()) {
      add_states(*leg.map, out.bound.back(), nullptr, states, out);
    } else {
      SHW_TRY(of_states, add_last_states(leg, target, facts, states, out));
    }
    objects.clear();
  }
  finish_states(legs.back(), target, states, std::move(of_states), out);
  out.left_out_states = std::move(states.left_out);
  return out;
}

}  // namespace shw
