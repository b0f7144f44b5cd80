#include "core/transform/tilings.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/base/spelling.h"
#include "core/transform/packed_tensor.h"

namespace shw {
namespace {

// Limit on nesting: no such list is nested, and printing a deep one would overflow the stack.
constexpr int kMaxNesting = 8;

// True if an earlier rank, which differs only on replicated axes, has the same tiles.
bool is_replica_of_earlier_rank(const Mesh& mesh, const std::vector<Placement>& placements,
                                std::int64_t rank) {
  const std::vector<std::int64_t> at = mesh.coordinates(rank);
  for (std::size_t axis = 0; axis < at.size() && axis < placements.size(); ++axis) {
    if (placements[axis].kind == Placement::Kind::kReplicate && at[axis] != 0) return true;
  }
  return false;
}

Result<std::vector<TargetChunk>> mesh_tiles(const Mesh& mesh, const MeshTiling& tiling,
                                            const TargetTensor& tensor) {
  SHW_CHECK(check_no_partial(tiling.placements, tensor.fqn));
  std::vector<TargetChunk> tiles;
  std::set<Extents> seen;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    if (is_replica_of_earlier_rank(mesh, tiling.placements, rank)) continue;
    auto boxes = local_boxes(tensor.shape, mesh, tiling.placements, rank);
    if (!boxes) {
      boxes.error().place.tensor = tensor.fqn;
      return tl::unexpected<Error>(std::move(boxes).error());
    }
    for (Box& box : *boxes) {
      if (is_empty(box) || !seen.insert(box.offsets).second) continue;
      tiles.push_back({std::move(box), static_cast<std::uint32_t>(rank)});
    }
  }
  // An empty tensor gets one empty tile, so that the entry keeps a record.
  if (tiles.empty()) tiles.push_back({whole(tensor.shape), 0});
  return tiles;
}

}  // namespace

Status check_no_partial(const std::vector<Placement>& placements, std::string_view fqn) {
  for (const Placement& placement : placements) {
    if (placement.kind == Placement::Kind::kPartial)
      return cannot_make_target(fqn,
                                "Partial leaves sums that nobody has added up: it cannot be saved",
                                "use Replicate or Shard");
  }
  return {};
}

namespace {

tl::unexpected<Error> with_step_in_error(const MeshTiling& tiling, Error error) {
  if (tiling.step != 0)
    error.message = fmt::format("step {} (reshard): {}", tiling.step, error.message);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

Result<std::vector<TargetChunk>> make_tiles(const TargetState& all, const NewTiling& tiling,
                                            const TargetTensor& tensor) {
  if (const auto* mesh = std::get_if<MeshTiling>(&tiling)) {
    auto tiles = mesh_tiles(all.meshes[mesh->mesh], *mesh, tensor);
    if (!tiles) return with_step_in_error(*mesh, std::move(tiles).error());
    return tiles;
  }
  if (std::holds_alternative<WholeTiling>(tiling))
    return std::vector<TargetChunk>{{whole(tensor.shape), 0}};
  return tensor.tiles;
}

Result<TargetTensor> tensor_of(const TargetState& all, const TargetEntry& entry) {
  TargetTensor tensor;
  if (entry.made != nullptr) {
    tensor = entry.made->unpacked();
  } else {
    SHW_TRY(tensor, target_tensor(all, 0, entry.as_saved));
  }
  if (!std::holds_alternative<std::monostate>(entry.tiling)) {
    SHW_TRY(tensor.tiles, make_tiles(all, entry.tiling, tensor));
  }
  return tensor;
}

Result<PlacementRules> placement_rules_from_json(std::string_view json, const std::string& source,
                                                 const Mesh& mesh) {
  auto refuse = [&](const std::string& why, std::optional<std::uint64_t> at = {}) {
    return fail(ErrorKind::kUsage, why, {source, at},
                "write {\"*.weight\": [\"Shard(0)\", \"Replicate\"]}: one placement a mesh axis");
  };
  bool is_deep = false;
  auto keeps = [&](int depth, nlohmann::ordered_json::parse_event_t, nlohmann::ordered_json&) {
    is_deep = is_deep || depth >= kMaxNesting;
    return !is_deep;
  };
  const auto read = parse_json<nlohmann::ordered_json>(json, keeps);
  const auto& parsed = read.tree;
  if (is_deep)
    return refuse(fmt::format("is nested {} deep, which no placements are", kMaxNesting));
  if (parsed.is_discarded()) return refuse(json_error_text(read), json_error_offset(read));
  if (!parsed.is_object()) return refuse("is not an object of patterns");
  PlacementRules out;
  for (const auto& [pattern, list] : parsed.items()) {
    if (!list.is_array()) return refuse("\"" + pattern + "\" has no list of placements");
    if (list.size() != mesh.axes.size()) {
      return refuse(fmt::format("\"{}\" has {} placements where the mesh has {} axes", pattern,
                                list.size(), mesh.axes.size()));
    }
    std::vector<Placement> placements;
    for (const auto& one : list) {
      auto placement = one.is_string() ? parse_placement(one.get_ref<const std::string&>())
                                       : std::optional<Placement>{};
      if (!placement) return refuse("\"" + pattern + "\": " + one.dump() + " is not a placement");
      placements.push_back(*placement);
    }
    out.rules.emplace_back(pattern, std::move(placements));
  }
  return out;
}

std::vector<Placement> placements_by_rules(const PlacementRules& rules, std::string_view fqn,
                                           std::size_t ndim, const Mesh& mesh) {
  for (const auto& [pattern, placements] : rules.rules) {
    if (matches_pattern(pattern, std::string(fqn))) return placements;
  }
  std::vector<Placement> placements(mesh.axes.size());
  if (ndim != 0 && !placements.empty()) placements.front() = {Placement::Kind::kShard, 0, 1};
  return placements;
}

}  // namespace shw
