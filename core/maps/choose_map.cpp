#include "core/maps/choose_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/spelling.h"
#include "core/base/words.h"
#include "core/maps/built_in_maps.h"
#include "core/maps/map_steps.h"

namespace shw {
namespace {

// A map with its direction.
struct MapLeg {
  const ModelMap* map = nullptr;
  MapDirection way = MapDirection::kForward;
};

const std::string& source_scheme(const MapLeg& leg) {
  return leg.way == MapDirection::kForward ? leg.map->from : leg.map->to;
}
const std::string& target_scheme(const MapLeg& leg) {
  return leg.way == MapDirection::kForward ? leg.map->to : leg.map->from;
}

std::vector<MapLeg> all_legs() {
  std::vector<MapLeg> out;
  for (const ModelMap& map : built_in_maps()) {
    out.push_back({&map, MapDirection::kForward});
    out.push_back({&map, MapDirection::kBack});
  }
  return out;
}

tl::unexpected<Error> no_map_error(const std::string& from, const std::string& to) {
  return fail(ErrorKind::kUsage,
              from.empty() ? "its tensors have names of no program that a map is known for"
                           : fmt::format("no map is known from {} to {}", from, to),
              {}, "give a map of your own with --map FILE; docs/maps.md says how one is written");
}

// The maps that lead from one world to another.
Result<std::vector<MapLeg>> find_map_path(const std::string& from, const std::string& to) {
  for (const MapLeg& leg : all_legs()) {
    if (source_scheme(leg) == from && target_scheme(leg) == to) return std::vector<MapLeg>{leg};
  }
  for (const MapLeg& first : all_legs()) {
    for (const MapLeg& second : all_legs()) {
      if (source_scheme(first) == from && target_scheme(first) == source_scheme(second) &&
          target_scheme(second) == to)
        return std::vector<MapLeg>{first, second};
    }
  }
  return no_map_error(from, to);
}

// The direction of a map in which more names have rows.
Result<MapLeg> choose_direction(const ModelMap& map, const std::string& to,
                                std::span<const MapTensor> tensors, const ModelFacts& facts) {
  if (to == map.to) return MapLeg{&map, MapDirection::kForward};
  if (to == map.from) return MapLeg{&map, MapDirection::kBack};
  if (!to.empty())
    return fail(ErrorKind::kUsage, fmt::format("the map {} is between {} and {}, not {}", map.name,
                                               map.from, map.to, to));
  const MapFit forward = measure_map_fit(map, MapDirection::kForward, tensors, facts);
  const MapFit back = measure_map_fit(map, MapDirection::kBack, tensors, facts);
  return MapLeg{&map, forward >= back ? MapDirection::kForward : MapDirection::kBack};
}

// True if scales of quantised weights exist.
bool are_quantised(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with("_scales") || name.ends_with("_scale_inv") || name.ends_with("_scale");
  });
}

Status check_all_have_rows(const MapLeg& leg, const BoundMap& bound,
                           const std::vector<std::string>& leave_out) {
  std::vector<std::string> names;
  for (const std::string& name : bound.without_row) {
    if (std::none_of(leave_out.begin(), leave_out.end(),
                     [&](const std::string& one) { return matches_pattern(one, name); }))
      names.push_back(name);
  }
  if (bound.rows.empty())
    return fail(ErrorKind::kUsage, fmt::format("no tensor has a row in the map {}", leg.map->name));
  if (names.empty()) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("{} of {} have no row in the map {}: {}", plural(names.size(), "tensor"),
                          leg.way == MapDirection::kForward ? leg.map->from : leg.map->to,
                          leg.map->name, short_list_text(names)),
              {},
              are_quantised(names)
                  ? "open it with its weights as numbers: PATH/@dequantised in place of PATH"
                  : "add rows with --map FILE, or leave them out by name with --leave-out PATTERN");
}

void append(std::vector<Step> steps, MappedSteps& out) {
  out.steps.insert(out.steps.end(), std::make_move_iterator(steps.begin()),
                   std::make_move_iterator(steps.end()));
}

Status add_leg(const MapLeg& leg, const ModelFacts& facts, const std::vector<std::string>& objects,
               const std::vector<std::string>& leave_out, MappedSteps& out) {
  SHW_TRY(BoundMap bound, bind_map(*leg.map, leg.way, out.tensors, facts));
  SHW_CHECK(check_all_have_rows(leg, bound, leave_out));
  bound.left_out.insert(bound.left_out.end(), bound.without_row.begin(), bound.without_row.end());
  append(steps_of(bound, objects, out.steps.size()), out);
  out.tensors = tensors_after(bound);
  out.maps.push_back(leg.map->name);
  out.left_out.insert(out.left_out.end(), bound.left_out.begin(), bound.left_out.end());
  out.to = target_scheme(leg);
  out.bound.push_back(std::move(bound));
  return {};
}

const MapStates& target_states(const MapLeg& leg) {
  return leg.way == MapDirection::kForward ? leg.map->to_states : leg.map->from_states;
}

// Adds the states of the last bound weights. `is_last`: they get the program's names. Returns the
// resulting tensors.
std::vector<MapTensor> add_states(const MapLeg& leg, bool is_last, CarriedStates& states,
                                  MappedSteps& out) {
  std::vector<MapTensor> made;
  const MapStates* target = is_last ? &target_states(leg) : nullptr;
  for (BoundMap& bound : bind_states(*leg.map, out.bound.back(), target, states)) {
    append(steps_of(bound, {}, out.steps.size()), out);
    std::vector<MapTensor> tensors = tensors_after(bound);
    made.insert(made.end(), tensors.begin(), tensors.end());
    out.left_out.insert(out.left_out.end(), bound.left_out.begin(), bound.left_out.end());
    out.of_states.push_back(std::move(bound));
  }
  return made;
}

// Adds master weights if the program needs them, and counts the states of each kind.
void finish_states(const MapLeg& last, CarriedStates& states, std::vector<MapTensor> made,
                   MappedSteps& out) {
  std::map<std::string, const MapTensor*> weights;
  for (const MapTensor& tensor : out.tensors) weights.emplace(tensor.fqn, &tensor);
  std::vector<Step> masters =
      steps_that_make_masters(*last.map, last.way, target_states(last), states);
  for (const Step& step : masters) {
    const auto* copy = std::get_if<CopyStep>(&step);
    if (copy == nullptr) continue;
    made.push_back({copy->to, weights.at(copy->from)->shape});
    ++out.made_masters;
  }
  append(std::move(masters), out);
  out.state_names = target_states(last);
  out.with_moments = parameters_with_moments(*last.map, last.way, states);
  for (const auto& [kind, by_weight] : states.by_kind) {
    if (!by_weight.empty()) out.states[kind] = by_weight.size();
  }
  out.tensors.insert(out.tensors.end(), std::make_move_iterator(made.begin()),
                     std::make_move_iterator(made.end()));
}

// Removes the converted states from the tensors, so that weights remain.
void keep_weights(const CarriedStates& states, std::vector<MapTensor>& tensors) {
  std::set<std::string> carried;
  for (const auto& [kind, by_weight] : states.by_kind) {
    for (const auto& [weight, state] : by_weight) carried.insert(state);
  }
  std::erase_if(tensors, [&](const MapTensor& tensor) { return carried.contains(tensor.fqn); });
}

bool is_of_optimizer(const std::string& entry) {
  return entry.substr(0, entry.find('.')).find("optim") != std::string::npos;
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
  for (const MapLeg& leg : all_legs()) {
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
                                 const LeaveOut& leave_out) {
  MappedSteps out;
  out.tensors = tensor_names_and_shapes(checkpoint);
  std::vector<MapLeg> legs;
  if (map != nullptr) {
    SHW_TRY(MapLeg leg, choose_direction(*map, to, out.tensors, facts));
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
    if (is_of_optimizer(object.fqn)) out.left_entries.push_back(object.fqn);
  }
  CarriedStates states;
  if (!leave_out.states)
    states = find_states(out.tensors, target_states(legs.back()), leave_out.patterns);
  keep_weights(states, out.tensors);
  std::vector<MapTensor> of_states;
  for (const MapLeg& leg : legs) {
    SHW_CHECK(add_leg(leg, facts, objects, leave_out.patterns, out));
    of_states = add_states(leg, &leg == &legs.back(), states, out);
    objects.clear();
  }
  finish_states(legs.back(), states, std::move(of_states), out);
  return out;
}

}  // namespace shw
