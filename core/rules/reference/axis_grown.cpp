// One dimension is an integer multiple of the expected size; nothing else differs.
#include <fmt/core.h>

#include <set>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct GrownDim {
  std::size_t dim = 0;
  std::int64_t factor = 1;
};

std::optional<GrownDim> find_grown_dim(ExtentsView saved, ExtentsView expected) {
  if (saved.size() != expected.size()) return std::nullopt;
  std::optional<GrownDim> out;
  for (std::size_t d = 0; d < saved.size(); ++d) {
    if (saved[d] == expected[d]) continue;
    if (out || expected[d] <= 0 || saved[d] < 2 * expected[d] || saved[d] % expected[d] != 0)
      return std::nullopt;
    out = GrownDim{d, saved[d] / expected[d]};
  }
  return out;
}

// True if chunks divide exactly into parts of the expected size: from_local with a wrong placement
// concatenates whole copies.
bool chunks_divide_into_copies(const Checkpoint& c, TensorId tensor, const GrownDim& grown,
                               std::int64_t expected) {
  std::set<std::int64_t> parts;
  for (ChunkId chunk : c.chunks(tensor)) {
    if (volume(c.sizes(chunk)).value_or(0) == 0) continue;
    if (c.offsets(chunk).size() <= grown.dim || c.sizes(chunk).size() <= grown.dim) return false;
    std::int64_t first = c.offsets(chunk)[grown.dim], size = c.sizes(chunk)[grown.dim];
    if (first < 0 || size <= 0 || size > expected || first % expected > expected - size)
      return false;
    parts.insert(first / expected);
  }
  return count_of(parts.size()) == grown.factor;
}

void find_grown_axes(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.spec == nullptr) return;
  const Checkpoint& c = facts.checkpoint;
  std::unordered_set<std::string_view> explained;
  for (const Rule* cause : {&kPlacementAxisMoved, &kGluSplitLocal, &kLocalSavedAsGlobal,
                            &kAxisDropped, &kTransposed, &kVocabularyPadding, &kAxisRepeated})
    explained.merge(explained_by(findings, cause->id));
  Finding finding{.rule = "axis-grown"};
  std::vector<std::string> how;
  for (const auto& [fqn, entry] : each_of(facts.spec->entries, facts)) {
    auto tensor = c.find(fqn);
    if (!tensor || explained.contains(fqn)) continue;
    if (same(c.shape(*tensor), entry.shape)) continue;
    auto grown = find_grown_dim(c.shape(*tensor), entry.shape);
    // Any other difference means another model, which shape-mismatch reports.
    if (!grown || !chunks_divide_into_copies(c, *tensor, *grown, entry.shape[grown->dim])) return;
    how.push_back(fmt::format("{}: dim {} is {} times as long", fqn, grown->dim, grown->factor));
    if (finding.subjects.empty())
      finding.evidence = {{"saved", copy_of(c.shape(*tensor))},
                          {"expected", entry.shape},
                          {"dim", static_cast<std::int64_t>(grown->dim)},
                          {"factor", grown->factor}};
    finding.subjects.push_back(fqn);
  }
  if (finding.subjects.empty()) return;
  finding.cause = plural(finding.subjects.size(), "tensor") +
                  (finding.subjects.size() == 1 ? " is" : " are") +
                  " longer than the model expects, a whole number of times along one dimension (" +
                  how.front() +
                  "), and no chunk crosses a multiple of the expected size: copies held by every "
                  "rank were probably recorded as shards.";
  finding.evidence.emplace_back("tensors", capped(how));
  finding.evidence.emplace_back("count", count_of(how.size()));
  finding.link = "pytorch #144109";
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kAxisGrown = {
    .id = "axis-grown",
    .depth = Depth::kMetadata,
    .title = "A dimension is too long by a whole factor",
    .teaches =
        "Usual cause: every rank held the full tensor, but it was saved as if each held a shard. "
        "The recorded size is then multiplied by the number of ranks, and the same rows are stored "
        "several times. torch refuses to load it. If the parts are equal byte for byte (and not "
        "merely constant, like untrained norms), one of them is the tensor. A checkpoint of a "
        "larger model can look the same, so nothing is cut without another checkpoint to compare "
        "with.",
    .lesson = {.drawing = R"(
  expected    saved by two ranks that each held all of it
  ┌───────┐   ┌───────┐
  │ rows  │   │ rows  │ rank 0, offset 0
  └───────┘   ├───────┤
              │ rows  │ rank 1, offset 4: the same once more
              └───────┘
)",
               .remedy = "Compare with --against: if the parts are equal, each one is the tensor. "
                         "Nothing is cut without a reference.",
               .link = "https://github.com/pytorch/pytorch/issues/144109"},
    .outcome = RunOutcome::kLoadFails,
    .run = find_grown_axes,
};

}  // namespace shw
