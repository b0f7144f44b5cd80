#include "core/rules/router_law.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "core/rules/optimizer_states.h"
#include "core/rules/rules.h"
#include "core/rules/side_masters.h"

namespace shw {
namespace {

constexpr double kConfidence = 0.9;  // failures.md 5.c

struct Layer {
  std::vector<TensorId> first, second;  // [x 2I, H] or [x I, H]; [x H, I]
  std::vector<TensorId> routers;        // [E, H]
};

// "a.mlp.experts.fc1.weight0": layer "a.mlp.", "fc1".
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

// "a.mlp.gate.weight", "a.mlp.gate.gate.weight", "a.mlp.router.weight": layer "a.mlp.".
std::optional<std::string_view> router_layer(std::string_view fqn) {
  for (std::string_view end :
       {"gate.gate.weight", "router.gate.weight", "gate.weight", "router.weight"}) {
    if (!fqn.ends_with(end)) continue;
    std::string_view layer = fqn.substr(0, fqn.size() - end.size());
    if (layer.ends_with('.')) return layer;
  }
  return std::nullopt;
}

std::map<std::string, Layer, std::less<>> layers_of(const RuleInput& input) {
  std::map<std::string, Layer, std::less<>> layers;
  const Checkpoint& c = input.checkpoint;
  for (std::uint32_t t = 0; t < c.tensor_count(); ++t) {
    TensorId tensor{t};
    std::string_view fqn = c.fqn(tensor);
    if (c.shape(tensor).size() != 2 || parse_state_fqn(fqn)) continue;
    if (auto name = expert_name(fqn)) {
      if (input.spec != nullptr && input.spec->find(fqn) != nullptr) continue;
      Layer& layer = layers[std::string(name->layer)];
      if (name->matrix == "fc1" || name->matrix == "linear_fc1") layer.first.push_back(tensor);
      if (name->matrix == "fc2" || name->matrix == "linear_fc2") layer.second.push_back(tensor);
    } else if (auto router = router_layer(fqn)) {
      layers[std::string(*router)].routers.push_back(tensor);
    }
  }
  return layers;
}

bool all_alike(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](TensorId tensor) {
    return same(c.shape(tensor), c.shape(tensors.front()));
  });
}

struct Count {
  std::int64_t routed = 0, saved = 0;
};

// Nothing where one of the equalities that tie experts and router together does not hold.
std::optional<Count> count(const Checkpoint& c, const Layer& layer) {
  if (layer.routers.size() != 1 || layer.first.empty() ||
      layer.first.size() != layer.second.size() || !all_alike(c, layer.first) ||
      !all_alike(c, layer.second))
    return std::nullopt;
  ExtentsView router = c.shape(layer.routers[0]);
  ExtentsView first = c.shape(layer.first[0]), second = c.shape(layer.second[0]);
  std::int64_t hidden = router[1], inner = second[1];
  if (hidden < 1 || inner < 1 || first[1] != hidden || second[0] % hidden != 0) return std::nullopt;
  std::int64_t stacked = second[0] / hidden;
  if (stacked < 1 || first[0] % stacked != 0) return std::nullopt;
  std::int64_t rows = first[0] / stacked;
  if (rows % inner != 0 || rows / inner > 2) return std::nullopt;
  return Count{router[0], static_cast<std::int64_t>(layer.first.size()) * stacked};
}

// Every rank's own masters beside the checkpoint: with a spec all of it comes back.
void add_side_files(const RuleInput& input, Finding& finding) {
  auto masters = read_side_masters(input.checkpoint);
  if (!masters) return;
  std::set<std::string> meshes;
  std::vector<std::string> files;
  for (const auto& [rank, file] : masters->ranks) {
    files.push_back(file.path);
    for (const auto& [place, tensor] : file.masters) {
      if (tensor.sharding && !tensor.sharding->mesh.ranks.empty() && meshes.size() < kMaxEvidence)
        meshes.insert(to_text(ExtentsView(tensor.sharding->mesh.ranks)));
    }
  }
  finding.evidence.emplace_back("per-rank masters beside it", capped(files));
  if (!meshes.empty())
    finding.evidence.emplace_back("meshes that they name",
                                  std::vector<std::string>(meshes.begin(), meshes.end()));
}

}  // namespace

void add_experts_missing_by_router(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& c = input.checkpoint;
  Finding finding;
  finding.rule = "axis-dropped";
  finding.severity = Severity::kWarning;
  finding.link = "ISEEKYAN/Megatron-LM #61";
  for (const auto& [name, layer] : layers_of(input)) {
    auto found = count(c, layer);
    if (!found || found->saved >= found->routed || found->routed % found->saved != 0) continue;
    if (finding.subjects.empty()) {
      std::string router(c.fqn(layer.routers[0]));
      finding.cause = router + " chooses among " + std::to_string(found->routed) +
                      " experts and only " + std::to_string(found->saved) +
                      " were saved: the saver probably left out the expert-parallel axis, and " +
                      "one rank's experts stand for those of " +
                      std::to_string(found->routed / found->saved) + ".";
      finding.evidence = {{"router", router},
                          {"experts of the router", found->routed},
                          {"experts saved", found->saved},
                          {"factor", found->routed / found->saved},
                          {"confidence", kConfidence},
                          {"undecided", std::string("which rows belong where needs a spec (--spec) "
                                                    "that gives shapes, mesh and placements")}};
    }
    for (const auto* tensors : {&layer.first, &layer.second}) {
      for (TensorId tensor : *tensors) finding.subjects.emplace_back(c.fqn(tensor));
    }
  }
  if (finding.subjects.empty()) return;
  add_side_files(input, finding);
  findings.push_back(std::move(finding));
}

}  // namespace shw
