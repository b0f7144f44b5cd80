#include <fmt/core.h>

#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/grown_axis.h"
#include "core/rules/explained.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// How two shapes are related, for the sentence: "dim 0 is 2 times as long as expected".
std::string relation(const Checkpoint& checkpoint, TensorId tensor, ExtentsView expected) {
  ExtentsView saved = checkpoint.shape(tensor);
  if (saved.size() != expected.size())
    return fmt::format("it has {} instead of {}", plural(saved.size(), "dimension"),
                       expected.size());
  if (auto why = why_not_relabelled(checkpoint, tensor, expected); !why.empty()) return why;
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (saved[d] == expected[d]) continue;
    if (expected[d] > 0 && saved[d] > expected[d] && saved[d] % expected[d] == 0) {
      parts.push_back(fmt::format("dim {} is {} times as long", d, saved[d] / expected[d]));
    } else if (saved[d] > 0 && expected[d] > saved[d] && expected[d] % saved[d] == 0) {
      parts.push_back(fmt::format("dim {} is 1/{} as long", d, expected[d] / saved[d]));
    } else {
      parts.push_back(fmt::format("dim {} is {} instead of {}", d, saved[d], expected[d]));
    }
  }
  return some_of(parts, 8);
}

void find_shape_mismatches(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& checkpoint = facts.checkpoint;
  std::unordered_set<std::string_view> explained;
  for (const Rule* cause :
       {&kPlacementAxisMoved, &kGluSplitLocal, &kLocalSavedAsGlobal, &kAxisDropped, &kTransposed,
        &kVocabularyPadding, &kAxisGrown, &kUnevenShards})
    explained.merge(explained_by(findings, cause->id));
  Finding finding;
  finding.rule = "shape-mismatch";
  std::vector<std::string> saved, expected;
  std::string how;
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    auto tensor = checkpoint.find(fqn);
    if (!tensor) continue;
    ExtentsView shape = checkpoint.shape(*tensor);
    if (same(shape, entry.shape) || explained.contains(fqn)) continue;
    if (finding.subjects.empty()) {
      finding.evidence = {{"saved", copy_of(shape)}, {"expected", entry.shape}};
      how = relation(checkpoint, *tensor, entry.shape);
    }
    finding.subjects.push_back(fqn);
    saved.push_back(to_text(shape));
    expected.push_back(to_text(entry.shape));
  }
  if (finding.subjects.empty()) return;
  finding.cause = plural(finding.subjects.size(), "tensor") +
                  (finding.subjects.size() == 1 ? " has" : " have") +
                  " another shape than the model expects, and torch refuses the load: " +
                  finding.subjects.front() + " is saved as " + saved.front() + ", expected " +
                  expected.front() + " (" + how + ").";
  finding.evidence.emplace_back("count", count_of(finding.subjects.size()));
  finding.evidence.emplace_back("saved_shapes", std::move(saved));
  finding.evidence.emplace_back("expected_shapes", std::move(expected));
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kShapeMismatch = {
    .id = "shape-mismatch",
    .depth = Depth::kMetadata,
    .title = "A tensor's saved shape is not the model's",
    .teaches =
        "torch compares the saved global shape with the model's before it copies, and stops with "
        "'Size mismatch between saved ... and current'. Either the checkpoint belongs to another "
        "model or configuration (hidden size, vocabulary padding, number of experts), or the save "
        "recorded a wrong global shape: one rank's part taken for the whole, or a placement on the "
        "wrong axis. The more special rules look for those; this one speaks where none of them "
        "could explain the difference.",
    .lesson = {.drawing = R"(
  saved      [50257, 768]     ┌───────────┐
  expected   [50304, 768]     │           │ 50257 rows of the vocabulary
                              ├ ─ ─ ─ ─ ─ ┤
                              └───────────┘ 47 rows of padding
)",
               .remedy = "`shardwright explain` with the loader's message ranks what it can be. "
                         "Where it is the configuration, change that and not the checkpoint.",
               .link = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5353"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kStops,
    .mended_by = MendedBy::kTiles,
    .run = find_shape_mismatches,
};

}  // namespace shw
