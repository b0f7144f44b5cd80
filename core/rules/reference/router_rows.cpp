// A router has more rows than there are experts.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/config_look.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kExperts = "experts.";
constexpr std::int64_t kMaxExperts = 1 << 16;

// Contents of an MoE block, e.g. "model.layers.3.mlp.".
struct RoutedBlock {
  std::optional<TensorId> router;
  std::set<std::int64_t> numbers;   // experts that are separate tensors
  std::optional<TensorId> stacked;  // all experts in one tensor
  bool has_others = false;          // tensors that are neither the router's nor shared experts'
};
using RoutedBlocks = std::map<std::string, RoutedBlock, std::less<>>;

void add_router(const Checkpoint& c, TensorId tensor, RoutedBlocks& blocks) {
  constexpr std::array<std::string_view, 5> kRouters = {
      "gate.weight", "router.weight", "gate.wg.weight", "router.classifier.weight",
      "router.proj.weight"};
  const std::string_view fqn = c.fqn(tensor);
  if (c.shape(tensor).size() != 2) return;
  for (std::string_view ending : kRouters) {
    if (!fqn.ends_with(ending)) continue;
    const std::string_view before = fqn.substr(0, fqn.size() - ending.size());
    if (before.ends_with('.')) blocks[std::string(before)].router = tensor;
  }
}

void add_expert(const Checkpoint& c, TensorId tensor, RoutedBlocks& blocks) {
  const std::string_view fqn = c.fqn(tensor);
  const std::size_t at = fqn.rfind(kExperts);
  if (at == std::string_view::npos || at == 0 || fqn[at - 1] != '.') return;
  std::string_view rest = fqn.substr(at + kExperts.size());
  const auto number = consume_number(rest);
  RoutedBlock& block = blocks[std::string(fqn.substr(0, at))];
  if (number && rest.starts_with('.'))
    block.numbers.insert(static_cast<std::int64_t>(*number));
  else if (!number && c.shape(tensor).size() == 3)
    block.stacked = tensor;
}

// True for a name of experts, by any spelling, that are not the shared ones.
bool is_expert_name(std::string_view fqn) {
  constexpr std::array<std::string_view, 3> kNoExpert = {"shared_expert", "expert_bias",
                                                         "correction_bias"};
  return fqn.find("expert") != fqn.npos &&
         std::none_of(kNoExpert.begin(), kNoExpert.end(),
                      [&](std::string_view word) { return fqn.find(word) != fqn.npos; });
}

// Notes tensors of blocks with a router. A block of some models names its experts otherwise.
void note_other_expert_names(const Checkpoint& c, TensorId tensor, RoutedBlocks& blocks) {
  const std::string_view fqn = c.fqn(tensor);
  for (std::size_t dot = fqn.rfind('.'); dot != fqn.npos && dot != 0;
       dot = fqn.rfind('.', dot - 1)) {
    const auto block = blocks.find(fqn.substr(0, dot + 1));
    if (block == blocks.end() || !block->second.router) continue;
    const std::string_view router = c.fqn(*block->second.router), own = fqn.substr(dot + 1);
    const std::string_view module = router.substr(0, router.rfind('.') + 1);
    block->second.has_others = block->second.has_others ||
                               (!fqn.starts_with(module) && !own.starts_with("shared_expert") &&
                                own.find("correction_bias") == own.npos);
  }
}

// Routers that score as many experts as config.json says, in blocks without one expert.
void report_no_expert(const Facts& facts, const RoutedBlocks& blocks,
                      const std::vector<std::int64_t>& said, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "router-rows", .severity = Severity::kWarning};
  std::int64_t rows = 0;
  for (const auto& [before, block] : blocks) {
    if (!block.router) continue;
    rows = c.shape(*block.router)[0];
    // One with tensors of another name speaks for all.
    if (block.has_others || std::find(said.begin(), said.end(), rows) == said.end()) return;
    finding.subjects.emplace_back(c.fqn(*block.router));
  }
  if (finding.subjects.empty()) return;
  finding.cause = fmt::format(
      "{} {} {} experts, as config.json says, and not one tensor of an expert is there ({}). The "
      "export left out all experts. A loader initializes them at random, or fails.",
      plural(finding.subjects.size(), "router"), finding.subjects.size() == 1 ? "scores" : "score",
      rows, short_list_text(finding.subjects));
  finding.evidence = {{"routers", capped(finding.subjects)},
                      {"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

std::int64_t experts_in(const Checkpoint& c, const RoutedBlock& block) {
  if (!block.numbers.empty()) return count_of(block.numbers.size());
  return block.stacked ? c.shape(*block.stacked)[0] : 0;
}

// True if the missing experts are already reported from config.json's count.
bool are_missing_experts_reported(const std::vector<Finding>& findings, const std::string& before) {
  const auto told = explained_by(findings, kConfigCount.id);
  return std::any_of(told.begin(), told.end(), [&](std::string_view subject) {
    return subject.starts_with(before + std::string(kExperts));
  });
}

std::string numbers_text(const RoutedBlock& block) {
  if (block.numbers.empty()) return "";
  const std::int64_t first = *block.numbers.begin(), last = *block.numbers.rbegin();
  if (first == last) return fmt::format(" (number {})", first);
  const bool is_run = last - first + 1 == count_of(block.numbers.size());
  return fmt::format(" (numbers {} to {}{})", first, last, is_run ? "" : ", with gaps");
}

void find_router_rows(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (!is_complete_folder(c)) return;
  RoutedBlocks blocks;
  for (TensorId tensor : each_tensor(facts)) {
    add_router(c, tensor, blocks);
    add_expert(c, tensor, blocks);
  }
  bool has_experts = false;
  for (TensorId tensor : each_tensor(facts)) {
    note_other_expert_names(c, tensor, blocks);
    has_experts = has_experts || is_expert_name(c.fqn(tensor));
  }
  // Zero-compute experts (LongCat) have router rows but no tensors, so a config whose count matches
  // the existing experts is trusted.
  const std::vector<std::int64_t> said = expert_counts_of_config(c);
  if (!has_experts) report_no_expert(facts, blocks, said, findings);
  Finding finding{.rule = "router-rows", .severity = Severity::kWarning};
  std::vector<std::string> lines;
  for (const auto& [before, block] : each_of(blocks, facts)) {
    const std::int64_t experts = experts_in(c, block);
    if (!block.router || experts == 0) continue;
    const ExtentsView router = c.shape(*block.router);
    const std::int64_t rows = router[0];
    // Some models store it as [hidden, experts] (Ernie 4.5).
    if (std::find(said.begin(), said.end(), router[router.size() - 1]) != said.end()) continue;
    if (rows <= experts || rows > kMaxExperts ||
        std::find(said.begin(), said.end(), experts) != said.end() ||
        are_missing_experts_reported(findings, before))
      continue;
    finding.subjects.emplace_back(c.fqn(*block.router));
    lines.push_back(fmt::format("{} {} scores {} experts, and {}{} {} there", c.fqn(*block.router),
                                to_text(c.shape(*block.router)), rows,
                                plural(static_cast<std::uint64_t>(experts), "expert"),
                                numbers_text(block), experts == 1 ? "is" : "are"));
  }
  if (lines.empty()) return;
  finding.cause = lines.front() + ".";
  if (lines.size() > 1)
    finding.cause =
        lines.front() + fmt::format(", and so in {}.", plural(lines.size() - 1, "more layer"));
  finding.cause +=
      " Each expert-parallel rank probably numbered its experts from 0, and only one rank's files "
      "remained; or experts were not exported. Compare with --against a good copy to get the right "
      "numbers.";
  finding.evidence = {{"routers", capped(lines)}, {"count", count_of(lines.size())}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kRouterRows = {
    .id = "router-rows",
    .depth = Depth::kMetadata,
    .title = "The router has more experts than the checkpoint",
    .teaches =
        "A router has one row for each expert of its layer. Under expert parallelism each rank "
        "holds some of the experts; a saver that numbers them from 0 in each rank gives all ranks "
        "the same names, and the last file written overwrites the others. The checkpoint then has "
        "only some experts, perhaps under wrong numbers. A loader initializes the rest at random "
        "or fails. If config.json gives the number of experts that are there, nothing is reported: "
        "some routers score experts without weights.",
    .lesson = {.drawing = R"(
  4 ranks, 2 experts each      saved by each rank as    left
  rank 0: 0 1   rank 2: 4 5    experts.0, experts.1     experts.0, experts.1
  rank 1: 2 3   rank 3: 6 7                             of rank 3 (6 and 7)
  gate.weight [8, hidden]
)",
               .remedy = "Export again with global expert numbers. `shardwright check --against "
                         "REFERENCE` shows which experts are there, and `repair` renumbers them.",
               .link = "https://github.com/NVIDIA/Model-Optimizer/issues/1631"},
    .words = {.text = "experts missing"},
    .outcome = RunOutcome::kLosesElements,
    .survives_rewriting = true,
    .run = find_router_rows,
};

}  // namespace shw
