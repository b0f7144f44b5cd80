// Layers that still have their initial values, next to trained ones.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/facts/values/quant_numbers.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::int64_t kMinOfNorm = 16, kMaxOfNorm = 1 << 20;
constexpr std::size_t kMinLayers = 3;
constexpr double kMaxOnesOfTrained = 0.1;

// True for norms such as "model.layers.3.input_layernorm.weight", but not for biases, which are
// zero in many trained models.
bool is_norm_of_layer(const Checkpoint& c, TensorId tensor) {
  const std::string_view fqn = c.fqn(tensor);
  const bool is_norm =
      fqn.find("norm") != std::string_view::npos || fqn.find(".ln_") != std::string_view::npos;
  return is_norm && fqn.ends_with(".weight") && c.shape(tensor).size() == 1 &&
         c.shape(tensor)[0] >= kMinOfNorm && c.shape(tensor)[0] <= kMaxOfNorm &&
         !parse_state_fqn(fqn) && fqn.find("experts.") == std::string_view::npos;
}

// Share of elements that are exactly 1; nullopt if they cannot be read.
std::optional<double> share_of_ones(const Checkpoint& c, TensorId tensor) {
  const auto values = read_box_floats(c, tensor, whole(copy_of(c.shape(tensor))));
  if (!values || values->empty()) return std::nullopt;
  const auto ones = std::count(values->begin(), values->end(), 1.0F);
  return static_cast<double>(ones) / static_cast<double>(values->size());
}

struct LayerNorms {
  std::vector<TensorId> norms;
  std::size_t ones = 0;     // number of norms with only ones
  std::size_t trained = 0;  // number of norms with hardly any 1
};
using Stack = std::map<std::uint32_t, LayerNorms>;  // key: number of the layer

Finding untrained_layers_finding(const Checkpoint& c, const std::string& before, const Stack& stack,
                                 const std::vector<std::uint32_t>& fresh) {
  Finding finding{.rule = std::string(kFreshLayers.id), .severity = Severity::kWarning};
  std::vector<std::string> numbers;
  for (std::uint32_t number : fresh) {
    numbers.push_back(before + std::to_string(number));
    for (TensorId norm : stack.at(number).norms) finding.subjects.emplace_back(c.fqn(norm));
  }
  finding.cause = fmt::format(
      "All norms of {} are exactly 1, their initial value, and those of the other {} are trained: "
      "{} probably never loaded, and initialised at random when the checkpoint was saved. A model "
      "uses {} without an error.",
      short_list_text(numbers), plural(stack.size() - fresh.size(), "layer"),
      fresh.size() == 1 ? "its weights were" : "their weights were",
      fresh.size() == 1 ? "it" : "them");
  finding.evidence = {{"layers", capped(numbers)}, {"count", count_of(fresh.size())}};
  return finding;
}

void find_untrained_layers(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, Stack> stacks;  // key: prefix before the number
  for (TensorId tensor : each_tensor(facts)) {
    if (!is_norm_of_layer(c, tensor) || facts.tilings[index_of(tensor)].tiling != Tiling::kExact)
      continue;
    const std::vector<Member> members = members_in(c.fqn(tensor));
    if (members.empty() || members.front().after.empty()) continue;
    LayerNorms& layer = stacks[std::string(members.front().before)][members.front().index];
    layer.norms.push_back(tensor);
    const auto share = share_of_ones(c, tensor);
    layer.ones += share == 1 ? 1 : 0;
    layer.trained += share && *share < kMaxOnesOfTrained ? 1 : 0;
  }
  for (const auto& [before, stack] : stacks) {
    std::vector<std::uint32_t> fresh;
    bool has_partly = false;
    for (const auto& [number, layer] : stack) {
      if (layer.ones == layer.norms.size()) fresh.push_back(number);
      has_partly =
          has_partly || (layer.ones != layer.norms.size() && layer.trained != layer.norms.size());
    }
    // Norms that stay at 1 by design do so in other layers too. In the first steps of a run in 16
    // bits, most elements of a norm still round to 1, and in some layers all do.
    if (stack.size() < kMinLayers || has_partly || fresh.empty() || 2 * fresh.size() > stack.size())
      continue;
    findings.push_back(untrained_layers_finding(c, before, stack, fresh));
  }
}

}  // namespace

const Rule kFreshLayers = {
    .id = "fresh-layers",
    .depth = Depth::kData,
    .title = "A layer still has its initial values",
    .teaches =
        "A loader that does not find a layer's tensors initializes them at random, with only a "
        "line in its log. If that model is saved, the checkpoint is complete, but one layer was "
        "never trained. The norms show it: they start at exactly 1, and no trained norm stays "
        "there.",
    .lesson =
        {.drawing = R"(
  layers.2.input_layernorm.weight    0.412   0.388   0.430
  layers.3.input_layernorm.weight    1       1       1       never loaded
  layers.4.input_layernorm.weight    0.455   0.441   0.470
)",
         .remedy =
             "Look for \"newly initialized\" in the log of the conversion, correct the tensor "
             "names, and convert again. The trained values are not in this checkpoint."},
    .words = {.text = "never trained"},
    .outcome = RunOutcome::kLosesElements,
    .run = find_untrained_layers,
};

}  // namespace shw
