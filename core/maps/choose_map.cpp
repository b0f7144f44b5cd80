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

// One map and the way that it is gone.
struct MapLeg {
  const ModelMap* map = nullptr;
  MapWay way = MapWay::kForward;
};

const std::string& world_before(const MapLeg& leg) {
  return leg.way == MapWay::kForward ? leg.map->from : leg.map->to;
}
const std::string& world_behind(const MapLeg& leg) {
  return leg.way == MapWay::kForward ? leg.map->to : leg.map->from;
}

std::vector<MapLeg> all_legs() {
  std::vector<MapLeg> out;
  for (const ModelMap& map : built_in_maps()) {
    out.push_back({&map, MapWay::kForward});
    out.push_back({&map, MapWay::kBack});
  }
  return out;
}

tl::unexpected<Error> no_way(const std::string& from, const std::string& to) {
  return fail(ErrorKind::kUsage,
              from.empty() ? "its tensors have names of no program that a map is known for"
                           : fmt::format("no map is known from {} to {}", from, to),
              {}, "give a map of your own with --map FILE; docs/maps.md says how one is written");
}

// By which maps a checkpoint of one world becomes one of another.
Result<std::vector<MapLeg>> way_between(const std::string& from, const std::string& to) {
  for (const MapLeg& leg : all_legs()) {
    if (world_before(leg) == from && world_behind(leg) == to) return std::vector<MapLeg>{leg};
  }
  for (const MapLeg& first : all_legs()) {
    for (const MapLeg& second : all_legs()) {
      if (world_before(first) == from && world_behind(first) == world_before(second) &&
          world_behind(second) == to)
        return std::vector<MapLeg>{first, second};
    }
  }
  return no_way(from, to);
}

// The way of one map: that which more names have rows of.
Result<MapLeg> way_of(const ModelMap& map, const std::string& to,
                      std::span<const MapTensor> tensors, const ModelFacts& facts) {
  if (to == map.to) return MapLeg{&map, MapWay::kForward};
  if (to == map.from) return MapLeg{&map, MapWay::kBack};
  if (!to.empty())
    return fail(ErrorKind::kUsage, fmt::format("the map {} is between {} and {}, not {}", map.name,
                                               map.from, map.to, to));
  const MapFit forward = fit_of(map, MapWay::kForward, tensors, facts);
  const MapFit back = fit_of(map, MapWay::kBack, tensors, facts);
  return MapLeg{&map, forward >= back ? MapWay::kForward : MapWay::kBack};
}

// Scales stand beside weights that are quantised.
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
                          leg.way == MapWay::kForward ? leg.map->from : leg.map->to, leg.map->name,
                          some_of(names)),
              {},
              are_quantised(names)
                  ? "open it with its weights as numbers: PATH/@dequantised in place of PATH"
                  : "add rows with --map FILE, or leave them out by name with --leave-out PATTERN");
}

Status add_leg(const MapLeg& leg, const ModelFacts& facts, const std::vector<std::string>& objects,
               const std::vector<std::string>& leave_out, MappedSteps& out) {
  SHW_TRY(BoundMap bound, bind_map(*leg.map, leg.way, out.tensors, facts));
  SHW_CHECK(check_all_have_rows(leg, bound, leave_out));
  bound.left_out.insert(bound.left_out.end(), bound.without_row.begin(), bound.without_row.end());
  std::vector<Step> steps = steps_of(bound, objects, out.steps.size());
  out.tensors = tensors_after(bound);
  out.steps.insert(out.steps.end(), std::make_move_iterator(steps.begin()),
                   std::make_move_iterator(steps.end()));
  out.maps.push_back(leg.map->name);
  out.left_out.insert(out.left_out.end(), bound.left_out.begin(), bound.left_out.end());
  out.to = world_behind(leg);
  out.bound.push_back(std::move(bound));
  return {};
}

}  // namespace

std::vector<MapTensor> named_shapes(const Checkpoint& checkpoint) {
  std::vector<MapTensor> out;
  out.reserve(checkpoint.tensor_count());
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    out.push_back(
        {std::string(checkpoint.fqn(TensorId{t})), copy_of(checkpoint.shape(TensorId{t}))});
  return out;
}

std::string world_of(std::span<const MapTensor> tensors, const ModelFacts& facts) {
  std::string best;
  MapFit most;
  const ReadTensors plain = read_tensors(tensors, {});
  for (const MapLeg& leg : all_legs()) {
    const MapFit fit = fit_of(*leg.map, leg.way, tensors, plain, facts);
    if (fit.tensors == 0 || !(fit > most)) continue;
    most = fit;
    best = world_before(leg);
  }
  return best;
}

std::vector<std::string> known_worlds() {
  std::set<std::string> worlds;
  for (const ModelMap& map : built_in_maps()) worlds.insert({map.from, map.to});
  return {worlds.begin(), worlds.end()};
}

Result<MappedSteps> mapped_steps(const Checkpoint& checkpoint, const ModelMap* map,
                                 const std::string& to, const ModelFacts& facts,
                                 const std::vector<std::string>& leave_out) {
  MappedSteps out;
  out.tensors = named_shapes(checkpoint);
  std::vector<MapLeg> legs;
  if (map != nullptr) {
    SHW_TRY(MapLeg leg, way_of(*map, to, out.tensors, facts));
    legs.push_back(leg);
  } else {
    const std::string from = world_of(out.tensors, facts);
    if (from.empty() || from == to) return no_way(from, to);
    SHW_TRY(legs, way_between(from, to));
  }
  out.from = world_before(legs.front());
  std::vector<std::string> objects;
  for (const NonTensorEntry& object : checkpoint.objects()) objects.push_back(object.fqn);
  for (const MapLeg& leg : legs) {
    SHW_CHECK(add_leg(leg, facts, objects, leave_out, out));
    objects.clear();
  }
  return out;
}

}  // namespace shw
