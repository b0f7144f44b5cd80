#include "core/facts/layout/router_constraint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/base/checked.h"
#include "core/facts/evidence.h"
#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/states/per_rank_masters.h"

namespace shw {
namespace {

constexpr double kRouterConfidence = 0.9;  // share of correct results on generated cases
constexpr std::int64_t kMost = std::int64_t{1} << 31;  // limit of experts, and of one rank's rows
constexpr const char* kRouterLink = "ISEEKYAN/Megatron-LM #61";

struct Layer {
  std::vector<TensorId> first, second;   // [x 2I, H] or [x I, H]; [x H, I]
  std::vector<TensorId> routers;         // [E, H]
  bool has_local_expert_numbers = true;  // keys are known to number one rank's experts ("fc1")
  std::set<TensorId> of_spec;            // counted with the others, but described by the spec
  bool as_expected = false;  // the spec knows a tensor of the layer, which has the expected size
};

// "a.mlp.experts.fc1.weight0" has layer "a.mlp." and matrix "fc1".
struct ExpertName {
  std::string_view layer, matrix;
};
std::optional<ExpertName> expert_name(std::string_view fqn) {
  std::size_t digits = fqn.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(fqn[digits - 1])) != 0) --digits;
  std::string_view stem = fqn.substr(0, digits);
  if (digits == fqn.size() || !stem.ends_with(".weight")) return std::nullopt;
  stem.remove_suffix(std::string_view(".weight").size());
  std::size_t dot = stem.rfind('.');
  std::size_t experts = stem.find("experts.");
  if (dot == std::string_view::npos || experts == std::string_view::npos || experts > dot)
    return std::nullopt;
  if (stem.find("shared") != std::string_view::npos) return std::nullopt;
  return ExpertName{stem.substr(0, experts), stem.substr(dot + 1)};
}

// "a.mlp.gate.weight", "a.mlp.gate.gate.weight", "a.mlp.router.weight" have layer "a.mlp.".
std::optional<std::string_view> router_layer(std::string_view fqn) {
  for (std::string_view end :
       {"gate.gate.weight", "router.gate.weight", "gate.weight", "router.weight"}) {
    if (!fqn.ends_with(end)) continue;
    std::string_view layer = fqn.substr(0, fqn.size() - end.size());
    if (layer.ends_with('.')) return layer;
  }
  return std::nullopt;
}

std::map<std::string, Layer, std::less<>> layers_of(const CheckInput& input) {
  std::map<std::string, Layer, std::less<>> layers;
  const Checkpoint& c = input.checkpoint;
  for (TensorId tensor : each_tensor(input)) {
    std::string_view fqn = c.fqn(tensor);
    if (c.shape(tensor).size() != 2 || parse_state_fqn(fqn)) continue;
    if (auto name = expert_name(fqn)) {
      Layer& layer = layers[std::string(name->layer)];
      const SpecEntry* entry = input.spec == nullptr ? nullptr : input.spec->find(fqn);
      if (entry != nullptr) {
        layer.of_spec.insert(tensor);
        if (same(entry->shape, c.shape(tensor))) layer.as_expected = true;
      }
      if (name->matrix.starts_with("linear_")) layer.has_local_expert_numbers = false;
      if (name->matrix == "fc1" || name->matrix == "linear_fc1") layer.first.push_back(tensor);
      if (name->matrix == "fc2" || name->matrix == "linear_fc2") layer.second.push_back(tensor);
    } else if (auto router = router_layer(fqn)) {
      layers[std::string(*router)].routers.push_back(tensor);
    }
  }
  return layers;
}

bool all_equal_shapes(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](TensorId tensor) {
    return same(c.shape(tensor), c.shape(tensors.front()));
  });
}

struct Count {
  std::int64_t routed = 0, saved = 0;
};

// nullopt if one of the equations between experts and router does not hold.
std::optional<Count> count(const Checkpoint& c, const Layer& layer) {
  if (layer.as_expected || layer.routers.size() != 1 || layer.first.empty() ||
      layer.first.size() != layer.second.size() || !all_equal_shapes(c, layer.first) ||
      !all_equal_shapes(c, layer.second))
    return std::nullopt;
  ExtentsView router = c.shape(layer.routers[0]);
  ExtentsView first = c.shape(layer.first[0]), second = c.shape(layer.second[0]);
  std::int64_t hidden = router[1], inner = second[1];
  if (hidden < 1 || inner < 1 || first[1] != hidden || second[0] % hidden != 0) return std::nullopt;
  std::int64_t stacked = second[0] / hidden;
  if (stacked < 1 || first[0] % stacked != 0) return std::nullopt;
  std::int64_t rows = first[0] / stacked;
  if (rows % inner != 0 || rows / inner > 2) return std::nullopt;
  auto saved = checked_mul(count_of(layer.first.size()), stacked);
  if (!saved || std::max({router[0], first[0], second[0]}) > kMost) return std::nullopt;
  return Count{router[0], *saved};
}

// Experts that are too short by an integer factor.
struct ShortExperts {
  const Layer* layer = nullptr;
  Count count;
  std::int64_t factor() const { return count.routed / count.saved; }
};

std::vector<TensorId> tensors_of(const std::vector<ShortExperts>& all) {
  std::vector<TensorId> out;
  for (const ShortExperts& item : all) {
    for (const auto* tensors : {&item.layer->first, &item.layer->second})
      std::copy_if(tensors->begin(), tensors->end(), std::back_inserter(out),
                   [&](TensorId tensor) { return !item.layer->of_spec.contains(tensor); });
  }
  return out;
}

// The dimension that FSDP split, and the number of parts; nullopt if two dims are split or the
// parts are incomplete.
struct Parts {
  std::size_t dim = 0;
  std::int64_t count = 1;
};
std::optional<Parts> expert_split_of_tensor(const CheckInput& input, TensorId tensor) {
  const Checkpoint& c = input.checkpoint;
  if (input.tilings[index_of(tensor)].tiling != Tiling::kExact) return std::nullopt;
  Parts parts{0, 0};
  std::optional<std::size_t> dim;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)) == 0) continue;
    ++parts.count;
    for (std::size_t d = 0; d < c.sizes(chunk).size(); ++d) {
      if (c.sizes(chunk)[d] == c.shape(tensor)[d]) continue;
      if (dim && *dim != d) return std::nullopt;
      dim = d;
    }
  }
  parts.dim = dim.value_or(0);
  return parts;
}

// A mesh whose expert axis has the required size, and the axis that FSDP split.
struct Candidate {
  Mesh mesh;
  std::size_t experts = 0;
  std::optional<std::size_t> fsdp;  // nullopt: one rank holds each expert completely
};

std::vector<Candidate> candidates_from_given_mesh(const Mesh& mesh, std::int64_t factor) {
  std::vector<Candidate> out;
  for (std::size_t e = 0; e < mesh.axes.size(); ++e) {
    if (!is_expert_axis(mesh.axes[e].name) || mesh.axes[e].size != factor) continue;
    bool any = false;
    for (std::size_t f = 0; f < mesh.axes.size(); ++f) {
      if (f == e || mesh.axes[f].size < 2) continue;
      out.push_back({mesh, e, f});
      any = true;
    }
    if (!any) out.push_back({mesh, e, std::nullopt});
  }
  return out;
}

// Meshes where all ranks are expert ranks or parts of experts, in both axis orders. Further axes
// (pipeline, tensor parallelism inside experts) cannot be inferred.
std::vector<Candidate> candidates_from_rank_count(std::int64_t ranks, std::int64_t factor) {
  if (ranks < factor || ranks % factor != 0) return {};
  std::int64_t parts = ranks / factor;
  if (parts == 1) return {{Mesh{{{"ep", factor}}}, 0, std::nullopt}};
  return {{Mesh{{{"edp", parts}, {"ep", factor}}}, 1, 0},
          {Mesh{{{"ep", factor}, {"edp", parts}}}, 0, 1}};
}

// The pickled DTensors name the ranks of an FSDP group: a mesh with another group is rejected.
bool contradicts(const Candidate& candidate, const PerRankMasters& masters) {
  for (const auto& [rank, file] : masters.ranks) {
    for (const auto& [place, tensor] : file.masters) {
      if (!candidate.fsdp || !tensor.sharding) continue;
      const std::vector<std::int64_t>& group = tensor.sharding->mesh.ranks;
      auto parts = static_cast<std::size_t>(candidate.mesh.axes[*candidate.fsdp].size);
      // Skips the groups of other parameters.
      if (group.size() != parts || rank >= candidate.mesh.size()) continue;
      auto mine = candidate.mesh.coordinates(rank);
      for (std::size_t i = 0; i < parts; ++i) {
        mine[*candidate.fsdp] = static_cast<std::int64_t>(i);
        if (group[i] != candidate.mesh.rank(mine)) return true;
      }
    }
  }
  return false;
}

DerivedLayout derive_layout_for(const CheckInput& input, const std::vector<ShortExperts>& all,
                                const Candidate& candidate) {
  const Checkpoint& c = input.checkpoint;
  DerivedLayout out;
  for (TensorId tensor : tensors_of(all)) {
    SpecEntry entry;
    entry.shape = copy_of(c.shape(tensor));
    entry.shape[0] *= candidate.mesh.axes[candidate.experts].size;
    entry.mesh = candidate.mesh;
    entry.placements.assign(candidate.mesh.axes.size(), Placement{});
    entry.placements[candidate.experts] = {Placement::Kind::kShard, 0, 1};
    auto parts = expert_split_of_tensor(input, tensor);
    if (candidate.fsdp && parts)
      entry.placements[*candidate.fsdp] = {Placement::Kind::kShard,
                                           static_cast<std::int64_t>(parts->dim), 1};
    entry.role = "expert";
    out.spec.entries.emplace(c.fqn(tensor), std::move(entry));
  }
  const ShortExperts& first = all.front();
  out.constraint =
      fmt::format("{} selects among {} experts, {} were saved", c.fqn(first.layer->routers[0]),
                  first.count.routed, first.count.saved);
  out.spec.source = out.constraint;
  out.confidence = kRouterConfidence;
  out.link = kRouterLink;
  return out;
}

// True if all tensors of the layout can be placed by their writers.
bool can_place_all_by_router_layout(const CheckInput& input, const DerivedLayout& layout) {
  CheckInput derived = with_layout(input, layout);
  std::vector<DroppedAxis> dropped = dropped_axes(derived);
  return dropped.size() == layout.spec.entries.size() &&
         std::all_of(dropped.begin(), dropped.end(), [&](const DroppedAxis& item) {
           return item.placed && item.matches_grid_by_rank && item.others.empty() &&
                  is_expert_axis(item.entry->mesh->axes[item.axis].name);
         });
}

// The only layout consistent with constraints, writers and files, or a sentence about what would
// decide.
struct RouterLayoutAnswer {
  std::optional<DerivedLayout> layout;
  std::string undecided;
};
RouterLayoutAnswer decide(const CheckInput& input, const std::vector<ShortExperts>& all,
                          const std::optional<PerRankMasters>& masters) {
  constexpr const char* kSpec = "a spec (--spec) that gives shapes, mesh and placements";
  std::int64_t factor = all.front().factor();
  bool alike = std::all_of(all.begin(), all.end(), [&](const ShortExperts& item) {
    return item.factor() == factor && item.layer->has_local_expert_numbers;
  });
  if (!alike) return {{}, std::string("to place the rows, give ") + kSpec};
  std::optional<std::int64_t> cut_into;
  for (TensorId tensor : tensors_of(all)) {
    auto parts = expert_split_of_tensor(input, tensor);
    if (!parts || cut_into.value_or(parts->count) != parts->count)
      return {{}, std::string("the chunks do not divide the experts evenly; give ") + kSpec};
    cut_into = parts->count;
    if (parts->count > 1 && parts->dim == 0)
      return {{},
              "FSDP shards the rows of the stacked experts: whether the parts of one expert are "
              "contiguous or interleaved with other experts' depends on the loader, so a spec "
              "(--spec) is needed"};
  }
  std::vector<std::int64_t> beside;
  if (masters) {
    for (const auto& [rank, file] : masters->ranks) beside.push_back(rank);
  }
  std::vector<Candidate> candidates =
      input.mesh != nullptr ? candidates_from_given_mesh(*input.mesh, factor)
                            : candidates_from_rank_count(count_ranks(input, beside), factor);
  std::optional<DerivedLayout> found;
  for (const Candidate& candidate : candidates) {
    std::int64_t parts = candidate.fsdp ? candidate.mesh.axes[*candidate.fsdp].size : 1;
    if (parts != cut_into || (masters && contradicts(candidate, *masters))) continue;
    DerivedLayout layout = derive_layout_for(input, all, candidate);
    if (!can_place_all_by_router_layout(input, layout)) continue;
    if (found)
      return {{},
              "two mesh orders explain which rank wrote what: give the mesh (--mesh edp=..,ep=..) "
              "or a spec (--spec)"};
    found = std::move(layout);
  }
  if (found) return {std::move(found), {}};
  return {{},
          "no mesh of expert and data ranks explains which rank wrote which chunk: give the mesh "
          "(--mesh edp=..,ep=..) or a spec (--spec)"};
}

// Optimizer masters per rank exist: with a spec everything can be restored.
void add_side_files(const PerRankMasters& masters, UndecidedAxis& told) {
  std::set<std::string> meshes;
  std::vector<std::string> files;
  for (const auto& [rank, file] : masters.ranks) {
    files.push_back(file.path);
    for (const auto& [place, tensor] : file.masters) {
      if (tensor.sharding && !tensor.sharding->mesh.ranks.empty() && meshes.size() < kMaxEvidence)
        meshes.insert(to_text(ExtentsView(tensor.sharding->mesh.ranks)));
    }
  }
  told.evidence.emplace_back("per_rank_masters", capped(files));
  if (!meshes.empty())
    told.evidence.emplace_back("meshes_that_they_name",
                               std::vector<std::string>(meshes.begin(), meshes.end()));
}

UndecidedAxis undecided_by_router(const Checkpoint& c, const std::vector<ShortExperts>& all,
                                  const std::string& why) {
  UndecidedAxis told;
  const ShortExperts& first = all.front();
  std::string router(c.fqn(first.layer->routers[0]));
  told.cause = fmt::format(
      "{} selects among {} experts but only {} were saved: the save probably left out the "
      "expert-parallel axis, and kept the experts of only one of {} ranks.",
      router, first.count.routed, first.count.saved, first.factor());
  told.evidence = {{"router", router},
                   {"experts_of_the_router", first.count.routed},
                   {"experts_saved", first.count.saved},
                   {"factor", first.factor()},
                   {"confidence", kRouterConfidence},
                   {"undecided", why}};
  told.link = kRouterLink;
  for (TensorId tensor : tensors_of(all)) told.subjects.emplace_back(c.fqn(tensor));
  return told;
}

}  // namespace

std::vector<UncountedExperts> uncounted_experts(const CheckInput& input) {
  const Checkpoint& c = input.checkpoint;
  std::vector<UncountedExperts> out;
  for (const auto& [name, layer] : layers_of(input)) {
    if (layer.routers.size() != 1 || layer.first.empty() || !layer.has_local_expert_numbers)
      continue;
    if (!layer.of_spec.empty() || count(c, layer) || !all_equal_shapes(c, layer.first)) continue;
    out.push_back({layer.first, count_of(layer.first.size()), c.shape(layer.routers[0])[0]});
  }
  return out;
}

void derive_by_router(const CheckInput& input, DerivedLayouts& out) {
  const Checkpoint& c = input.checkpoint;
  auto layers = layers_of(input);
  std::vector<ShortExperts> all;
  for (const auto& [name, layer] : layers) {
    auto found = count(c, layer);
    if (found && found->saved < found->routed && found->routed % found->saved == 0)
      all.push_back({&layer, *found});
  }
  if (tensors_of(all).empty()) return;
  // Reading these files counts as reading headers: not at depth metadata.
  auto masters = input.depth == Depth::kMetadata ? std::nullopt : read_per_rank_masters(c);
  RouterLayoutAnswer answer = decide(input, all, masters);
  if (answer.layout) {
    out.decided.push_back(std::move(*answer.layout));
    return;
  }
  UndecidedAxis told = undecided_by_router(c, all, answer.undecided);
  if (masters) add_side_files(*masters, told);
  out.undecided.push_back(std::move(told));
}

}  // namespace shw
