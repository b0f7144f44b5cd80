#include "core/rules/layout/adjacent_optimizer.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/states/adjacent_optimizer.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr const char* kWhatToDo =
    "no safe remedy: the other ranks' states are not in this file. Resume from a step whose "
    "optimizer was gathered, or start the optimizer from scratch with these weights";

// Reports states that are partial DTensors by their own metadata.
void add_partial_dtensors(const AdjacentOptimizer& optimizer, std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  const AdjacentState* example = nullptr;
  for (const AdjacentState& state : optimizer.states) {
    const auto& sharding = state.tensor.sharding;
    if (!sharding || sharding->global_shape == state.tensor.sizes) continue;
    if (example == nullptr) example = &state;
    parts.push_back(fmt::format("state.{}.{}: {} of {}", state.parameter, state.key,
                                to_text(state.tensor.sizes), to_text(sharding->global_shape)));
  }
  if (example == nullptr) return;
  const DTensorSharding& sharding = *example->tensor.sharding;
  const std::int64_t ranks = volume(sharding.mesh.shape).value_or(0);
  const std::string who =
      sharding.rank ? fmt::format("rank {}", *sharding.rank) : std::string("one rank");
  Finding finding{.rule = std::string(kLocalSavedAsGlobal.id), .subjects = {optimizer.path}};
  finding.link = "transformers #48569";
  finding.cause = fmt::format(
      "{} holds only the part of {} of {}: {} of {} states are DTensors of which one rank's rows "
      "were saved ({}). The weights next to it are complete, so a resumed run uses wrong moments.",
      optimizer.path, who, ranks, human_count(parts.size()), human_count(optimizer.states.size()),
      parts.front());
  finding.evidence = {{"states", capped(parts)},
                      {"count", count_of(parts.size())},
                      {"mesh", to_text(sharding.mesh.shape)},
                      {"what_to_do", std::string(kWhatToDo)}};
  findings.push_back(std::move(finding));
}

// Reports plain tensors that fit the weights only as one rank's part.
void add_cut_tensors(const Checkpoint& checkpoint, const AdjacentOptimizer& optimizer,
                     std::vector<Finding>& findings) {
  const auto shapes = shapes_of(optimizer);
  const auto cut = shapes ? infer_sharded_states(checkpoint, *shapes) : std::nullopt;
  if (!cut) return;
  const std::string& parameter = shapes->parameters[cut->example];
  const Extents& saved = shapes->shapes[cut->example];
  Finding finding{.rule = std::string(kLocalSavedAsGlobal.id), .subjects = {optimizer.path}};
  finding.link = "transformers #48569";
  finding.cause = fmt::format(
      "{} holds one rank's states next to full weights: those of {} of {} parameters are 1/{} of "
      "their weights (state.{} is {}, of a weight {}). One rank of {} saved its own rows; those of "
      "the others are lost.",
      optimizer.path, human_count(cut->cut), human_count(shapes->parameters.size()), cut->parts,
      parameter, to_text(saved), to_text(cut->whole), cut->parts);
  finding.evidence = {
      {"example", "state." + parameter},      {"saved_shape", saved},
      {"shape_of_the_weight", cut->whole},    {"ranks", cut->parts},
      {"parameters_cut", count_of(cut->cut)}, {"parameters", count_of(shapes->parameters.size())},
      {"what_to_do", std::string(kWhatToDo)}};
  findings.push_back(std::move(finding));
}

void add_flat_tensors(const Checkpoint& checkpoint, const AdjacentOptimizer& optimizer,
                      std::vector<Finding>& findings) {
  const auto shapes = shapes_of(optimizer);
  const auto flat = shapes ? infer_flat_states(checkpoint, *shapes) : std::nullopt;
  if (!flat) return;
  Finding finding{.rule = std::string(kLocalSavedAsGlobal.id), .subjects = {optimizer.path}};
  finding.cause = fmt::format(
      "{} holds one rank's flat states next to full weights: {} of {} elements, 1/{} of the {} of "
      "the weights. FSDP or DeepSpeed flattened the states, one rank of {} saved its own part; "
      "the others' parts are lost.",
      optimizer.path, plural(flat->rows, "row"),
      human_count(static_cast<std::uint64_t>(flat->elements)), flat->ranks,
      human_count(static_cast<std::uint64_t>(flat->weights)), flat->ranks);
  finding.evidence = {{"ranks", flat->ranks},
                      {"elements", flat->elements},
                      {"elements_of_weights", flat->weights},
                      {"rows", count_of(flat->rows)},
                      {"what_to_do", std::string(kWhatToDo)}};
  findings.push_back(std::move(finding));
}

// Reports states of parameters that are listed by name instead of index.
void add_named_states(const Checkpoint& checkpoint, const AdjacentOptimizer& optimizer,
                      std::vector<Finding>& findings) {
  std::vector<std::string> parts;
  std::size_t known = 0, whole = 0;
  for (const AdjacentState& state : optimizer.states) {
    const auto weight = checkpoint.find(state.parameter);
    if (!weight || state.tensor.sharding) continue;
    const ExtentsView shape = checkpoint.shape(*weight);
    if (state.tensor.sizes.size() != shape.size()) continue;
    ++known;
    whole += same(state.tensor.sizes, shape) ? 1 : 0;
    std::size_t cut = 0;
    bool divides = true;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == state.tensor.sizes[d]) continue;
      ++cut;
      divides = divides && state.tensor.sizes[d] < shape[d];
    }
    if (cut == 1 && divides)
      parts.push_back(fmt::format("{}.{}: {} of {}", state.parameter, state.key,
                                  to_text(state.tensor.sizes), to_text(shape)));
  }
  // Factored or quantised states differ in more than one dimension.
  if (parts.empty() || parts.size() + whole < known) return;
  Finding finding{.rule = std::string(kLocalSavedAsGlobal.id), .subjects = {optimizer.path}};
  finding.cause = fmt::format(
      "{} holds one rank's states next to full weights: {} of {} are smaller than their weights in "
      "one dimension ({}). The other ranks' states are lost.",
      optimizer.path, human_count(parts.size()), human_count(known), parts.front());
  finding.evidence = {{"states", capped(parts)},
                      {"count", count_of(parts.size())},
                      {"what_to_do", std::string(kWhatToDo)}};
  findings.push_back(std::move(finding));
}

// Reports Adam moments of unequal size: Adam multiplies them by element. Factored and quantised
// moments have other keys.
void add_unequal_moments(const AdjacentOptimizer& optimizer, std::vector<Finding>& findings) {
  std::map<std::string_view, const AdjacentState*> first;
  std::vector<std::string> unequal;
  std::size_t pairs = 0;
  for (const AdjacentState& state : optimizer.states)
    if (state.key == "exp_avg") first[state.parameter] = &state;
  for (const AdjacentState& state : optimizer.states) {
    const auto other = first.find(state.parameter);
    if (state.key != "exp_avg_sq" || other == first.end()) continue;
    ++pairs;
    const Extents &moment = other->second->tensor.sizes, &square = state.tensor.sizes;
    if (moment != square)
      unequal.push_back(fmt::format("state.{}: exp_avg is {} and exp_avg_sq {}", state.parameter,
                                    to_text(moment), to_text(square)));
  }
  if (unequal.empty()) return;
  Finding finding{.rule = std::string(kSideFile.id),
                  .severity = Severity::kWarning,
                  .subjects = {optimizer.path}};
  finding.cause = fmt::format(
      "In {} the two moments of {} of {} have different shapes ({}). One was saved by a single "
      "rank or flattened, or they belong to different parameters; the first step after resuming "
      "fails or uses wrong moments.",
      optimizer.path, human_count(unequal.size()), plural(pairs, "parameter"), unequal.front());
  finding.evidence = {{"states", capped(unequal)}, {"count", count_of(unequal.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

void find_adjacent_parts(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.depth == Depth::kMetadata) return;
  for (const AdjacentOptimizer& optimizer : adjacent_optimizers(facts.checkpoint)) {
    const std::size_t before = findings.size();
    add_partial_dtensors(optimizer, findings);
    if (findings.size() != before) continue;
    add_named_states(facts.checkpoint, optimizer, findings);
    if (findings.size() == before) add_cut_tensors(facts.checkpoint, optimizer, findings);
    if (findings.size() == before) add_flat_tensors(facts.checkpoint, optimizer, findings);
    if (findings.size() == before) add_unequal_moments(optimizer, findings);
  }
}

}  // namespace shw
