#include "core/maps/optimizer_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/model/state_names.h"

namespace shw {
namespace {

const MapStates& states_of(const ModelMap& map, MapSide side) {
  return side == MapSide::kTo ? map.to_states : map.from_states;
}

// The side's own map: its weights are `from`, its parameters are `to`.
ModelMap map_of_parameters(const ModelMap& map, MapSide side, MapDirection way) {
  ModelMap out;
  out.name = map.name;
  out.values = map.values;
  out.below = map.below;
  out.forms = map.forms;
  out.from_prefixes = side == MapSide::kTo ? map.to_prefixes : map.from_prefixes;
  out.rows = states_of(map, side).parameters;
  // Forms choose only what is written. When reading, rows of all forms apply.
  for (MapRow& row : out.rows) {
    if (way == MapDirection::kBack) row.forms.clear();
  }
  return out;
}

std::set<std::string> parameters_with_states(std::span<const MapTensor> tensors) {
  std::set<std::string> names;
  for (const MapTensor& tensor : tensors) {
    if (const auto path = parse_state_fqn(tensor.fqn)) names.insert(unwrapped_name(path->key));
  }
  return names;
}

bool is_any_unwrapped_name_in(const std::vector<std::string>& names,
                              const std::set<std::string>& set) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return set.contains(unwrapped_name(name)); });
}

// True if the states are those of the joined parameter, and not of its weights.
bool is_joined(const BoundRow& row, const std::set<std::string>& with_states) {
  return is_any_unwrapped_name_in(row.to, with_states) &&
         std::none_of(row.from.begin(), row.from.end(), [&](const auto& from) {
           return is_any_unwrapped_name_in(from, with_states);
         });
}

// Rows that make parameters of the weights that no row joins.
void add_own_parameters(std::span<const MapTensor> tensors, BoundMap& bound) {
  std::set<std::string> joined;
  for (const BoundRow& row : bound.rows) {
    for (const auto& from : row.from) joined.insert(from.begin(), from.end());
  }
  const std::map<std::string, std::string> read(bound.stripped.begin(), bound.stripped.end());
  for (const MapTensor& weight : tensors) {
    if (parse_state_fqn(weight.fqn)) continue;
    const auto stripped = read.find(weight.fqn);
    const std::string& name = stripped == read.end() ? weight.fqn : stripped->second;
    if (joined.contains(name)) continue;
    bound.rows.push_back({.to = {name},
                          .from = {{name}},
                          .from_shapes = {weight.shape},
                          .to_shapes = {weight.shape}});
  }
}

}  // namespace

Result<std::optional<BoundMap>> bind_parameters(const ModelMap& map, MapSide side, MapDirection way,
                                                std::span<const MapTensor> tensors,
                                                const ModelFacts& facts) {
  if (states_of(map, side).parameters.empty()) return std::optional<BoundMap>();
  ModelMap of_side = map_of_parameters(map, side, way);
  const std::set<std::string> with_states = parameters_with_states(tensors);
  // First matches names alone: if no parameter is joined, the user need not give the sizes that
  // only joined parameters use.
  std::vector<MapTensor> named;
  for (const std::string& name : with_states) named.push_back({name, {}});
  if (way == MapDirection::kBack && measure_map_fit(of_side, way, named, facts).tensors == 0)
    return std::optional<BoundMap>();
  SHW_TRY(BoundMap bound, bind_map(of_side, MapDirection::kForward, tensors, facts));
  bound.way = way;
  bound.left_out.clear();
  bound.without_row.clear();
  if (way == MapDirection::kBack)
    std::erase_if(bound.rows, [&](const BoundRow& row) { return !is_joined(row, with_states); });
  add_own_parameters(tensors, bound);
  return std::optional(std::move(bound));
}

std::vector<MapTensor> joined_parameters(const BoundMap& parameters) {
  std::vector<MapTensor> out;
  for (const BoundRow& row : parameters.rows) {
    if (row.from.front() == row.to) continue;
    for (std::size_t i = 0; i < row.to.size(); ++i) {
      Extents shape = row.lead;
      shape.insert(shape.end(), row.to_shapes[i].begin(), row.to_shapes[i].end());
      out.push_back({row.to[i], std::move(shape)});
    }
  }
  return out;
}

}  // namespace shw
