// Any bytes as a map, and any map on a few tensors: an error at most.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/maps/bind_map.h"
#include "core/maps/map_steps.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shw;
  auto map = model_map_from_json({reinterpret_cast<const char*>(data), size}, "map.json");
  if (!map) return 0;
  const std::vector<MapTensor> tensors = {{"a.0.w", {4, 6}},    {"a.1.w", {4, 6}},
                                          {"a.0.v", {2, 6}},    {"b.w", {2, 4, 6}},
                                          {"b.0.0.w", {12, 2}}, {"c", {}}};
  ModelFacts facts;
  facts.config = {{"heads", 4}, {"groups", 2}};
  for (const MapDirection way : {MapDirection::kForward, MapDirection::kBack}) {
    auto bound = bind_map(*map, way, tensors, facts);
    if (bound) (void)steps_of(*bound, {});
  }
  return 0;
}
