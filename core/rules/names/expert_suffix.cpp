// Expert numbers at the end of weight names, as in Transformer Engine's grouped layers, combined
// with Hugging Face names (verl #2319).
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/letter_case.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/names/plan_names.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "model.layers.0.mlp.experts.100.gate_proj.weight" for "...mlp.experts.gate_proj.weight100";
// nullopt for other names. Megatron's own (linear_fc1.weight100) are correct.
std::optional<std::string> name_with_expert_number_inside(std::string_view fqn) {
  constexpr auto kOfHuggingFace = std::to_array<std::string_view>(
      {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "w1", "w2", "w3"});
  constexpr std::string_view kExperts = "experts.";
  std::size_t digits = fqn.size();
  while (digits > 0 && is_digit(fqn[digits - 1])) --digits;
  const std::string_view number = fqn.substr(digits), name = fqn.substr(0, digits);
  const std::size_t dot = name.rfind('.');
  if (number.empty() || dot == std::string_view::npos) return std::nullopt;
  const std::string_view part = name.substr(dot + 1);
  if (part != "weight" && part != "bias") return std::nullopt;
  const std::size_t before = name.rfind('.', dot - 1);
  if (dot == 0 || before == std::string_view::npos) return std::nullopt;
  const std::string_view matrix = name.substr(before + 1, dot - before - 1);
  const std::string_view row = name.substr(0, before + 1);
  const bool is_known =
      std::find(kOfHuggingFace.begin(), kOfHuggingFace.end(), matrix) != kOfHuggingFace.end();
  if (!is_known || !row.ends_with(kExperts)) return std::nullopt;
  return fmt::format("{}{}.{}.{}", row, number, matrix, part);
}

void find_expert_suffixes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "expert-suffix"};
  // The saving program may load its own names; files with whole tensors are meant for
  // others.
  finding.severity =
      c.format().traits.has_one_piece_per_tensor ? Severity::kWarning : Severity::kInfo;
  std::vector<std::string> likely;
  std::vector<std::pair<TensorId, std::string>> names;
  for (TensorId tensor : each_tensor(facts)) {
    auto name = name_with_expert_number_inside(c.fqn(tensor));
    if (!name || (facts.spec != nullptr && facts.spec->find(c.fqn(tensor)) != nullptr)) continue;
    finding.subjects.emplace_back(c.fqn(tensor));
    likely.push_back(std::string(c.fqn(tensor)) + ": " + *name);
    names.emplace_back(tensor, std::move(*name));
  }
  if (finding.subjects.empty()) return;
  finding.cause = fmt::format(
      "{} {} the number of {} expert at the end: no Hugging Face model reads it there (the likely "
      "name is {}).",
      plural(finding.subjects.size(), "name"), finding.subjects.size() == 1 ? "has" : "have",
      finding.subjects.size() == 1 ? "its" : "their", likely.front());
  finding.evidence = {{"likely", capped(likely)}, {"count", count_of(finding.subjects.size())}};
  if (finding.severity > Severity::kInfo) plan_new_names(facts, std::move(names), finding);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kExpertSuffix = {
    .id = "expert-suffix",
    .depth = Depth::kMetadata,
    .title = "Expert numbers are at the wrong place in tensor names",
    .teaches =
        "Megatron's grouped experts are the tensors weight0, weight1, ... of one layer; in a "
        "Hugging Face model each expert is a separate module, experts.0, experts.1. A converter "
        "that renames the layer but keeps the numbers at the end makes names that neither side "
        "reads: a load skips them as unexpected and initializes the experts at random. The values "
        "are there, under the wrong names.",
    .lesson = {.drawing = R"(
  saved      mlp.experts.gate_proj.weight100
  read       mlp.experts.100.gate_proj.weight
)",
               .remedy = "`shardwright repair CHECKPOINT` renames the tensors. Or convert again "
                         "with a converter that supports grouped experts.",
               .link = "https://github.com/verl-project/verl/issues/2319"},
    .words = {.text = "under a name that loaders do not read"},
    .run = find_expert_suffixes,
};

}  // namespace shw
