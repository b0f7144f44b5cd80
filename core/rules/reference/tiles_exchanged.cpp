// Whole tiles that are exchanged: ranks or files were confused, or a mesh was numbered along its
// other axis, so that each tile is stored under another tile's box. Found by equal bytes or,
// against another training step, by similarity.
#include "core/rules/reference/tiles_exchanged.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/tile_pattern.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string move_text(const Checkpoint& c, TensorId tensor, const TileMove& move) {
  return std::string(c.fqn(tensor)) + ": the chunk at " + to_text(move.recorded) + " belongs at " +
         to_text(move.found);
}

std::vector<std::string> moves_of(const Checkpoint& c, const std::vector<const MovedTiles*>& all) {
  std::vector<std::string> lines;
  for (const MovedTiles* one : all) {
    for (const TileMove& move : one->places.moves) {
      if (lines.size() == kMaxEvidence) return lines;
      lines.push_back(move_text(c, one->tensor, move));
    }
  }
  return lines;
}

std::vector<std::string> fqns_with_rounded_values(const Checkpoint& c,
                                                  const std::vector<const MovedTiles*>& all) {
  std::vector<std::string> fqns;
  for (const MovedTiles* one : all) {
    if (one->places.rounded) fqns.emplace_back(c.fqn(one->tensor));
  }
  return fqns;
}

std::string rounded_text(const std::vector<std::string>& rounded) {
  if (rounded.empty()) return "";
  return " " + short_list_text(rounded) + (rounded.size() == 1 ? " was" : " were") +
         " compared in the narrower of two dtypes, to which the other was rounded.";
}

double least_likeness(const std::vector<const MovedTiles*>& all) {
  double least = all.front()->places.likeness;
  for (const MovedTiles* one : all) least = std::min(least, one->places.likeness);
  return least;
}

std::string exchanged_cause(const Checkpoint& c, const TilePattern& pattern,
                            const MovedTiles& first, const std::vector<std::string>& rounded) {
  const TileMove& move = first.places.moves.front();
  const std::string fqn(c.fqn(first.tensor)), recorded = to_text(move.recorded);
  const bool is_like = first.places.likeness > 0;
  std::string cause =
      is_like
          ? "Training has changed " + fqn +
                " since the reference, and each of its chunks correlates with exactly one "
                "reference chunk, some at different positions: " +
                pattern.says + " (" + recorded + " is like what belongs at "
          : fqn + " has every chunk of the reference, but at different positions: " + pattern.says +
                " (" + recorded + " holds what belongs at ";
  cause += to_text(move.found) + ").";
  if (same(first.expected, c.shape(first.tensor))) cause += " It loads without an error.";
  return cause + rounded_text(rounded);
}

Finding exchanged_finding(const Facts& facts, const TilePattern& pattern,
                          const std::vector<const MovedTiles*>& all,
                          const std::set<TensorId>& right) {
  const Checkpoint& c = facts.checkpoint;
  Finding finding{.rule = "tiles-exchanged"};
  std::int64_t moved = 0;
  std::set<TensorId> mended;
  for (const MovedTiles* one : all) {
    finding.subjects.emplace_back(c.fqn(one->tensor));
    finding.diagnoses.emplace_back(WrongBoxes{one->tensor, one->expected, one->places.boxes});
    moved += count_of(one->places.moves.size());
    mended.insert(one->tensor);
  }
  const MovedTiles& first = *all.front();
  const bool is_like = first.places.likeness > 0;
  finding.cause = exchanged_cause(c, pattern, first, fqns_with_rounded_values(c, all));
  finding.evidence = {{"family", pattern.family},
                      {"tiles_that_moved", moved},
                      {"tiles", first.places.tiles},
                      {"moves", moves_of(c, all)}};
  if (is_like) finding.evidence.emplace_back("least_margin_of_correlation", least_likeness(all));
  std::string text = "Give " + plural(static_cast<std::uint64_t>(moved), "chunk") +
                     " the boxes at which the reference has " +
                     (is_like ? "the most similar chunks" : "their bytes") +
                     ": no byte moves, nothing is lost.";
  if (std::vector<std::string> left = states_not_repaired_with(facts, mended, right);
      !left.empty()) {
    text += " " + short_list_text(left) + (left.size() == 1 ? " is" : " are") +
            " left as saved: it is not known where the chunks of the optimizer's states belong; "
            "use a reference of the same step that has them.";
    finding.evidence.emplace_back("states_left", capped(left));
  }
  finding.remedy = Remedy{"relabel", true, std::move(text)};
  return finding;
}

}  // namespace

void report_exchanged(const Facts& facts, const std::vector<MovedTiles>& tensors,
                      const std::set<TensorId>& right, std::vector<Finding>& findings,
                      bool offers) {
  std::map<std::string, std::pair<TilePattern, std::vector<const MovedTiles*>>> by_pattern;
  for (const MovedTiles& one : tensors) {
    TilePattern pattern = pattern_of(one.places, one.expected);
    auto& [named, all] = by_pattern[pattern.says];
    named = std::move(pattern);
    all.push_back(&one);
  }
  for (const auto& [says, group] : by_pattern) {
    findings.push_back(exchanged_finding(facts, group.first, group.second, right));
    if (offers) continue;
    findings.back().remedy = {};
    findings.back().diagnoses.clear();
    findings.back().cause += kCorrelationIsNoProof;
  }
}

void report_known_displacements(const Facts& facts, const std::vector<MovedTiles>& tensors,
                                std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  for (const MovedTiles& one : tensors) {
    const TilePlaces& places = one.places;
    auto elsewhere = static_cast<std::uint64_t>(places.moves.size());
    Finding finding{.rule = "tiles-exchanged"};
    finding.subjects.emplace_back(c.fqn(one.tensor));
    finding.cause = "Of the " + plural(static_cast<std::uint64_t>(places.tiles), "chunk") + " of " +
                    finding.subjects.front() + ", " + human_count(elsewhere) +
                    (elsewhere == 1 ? " holds" : " hold") +
                    " data that the reference has at a different position (" +
                    to_text(places.moves.front().recorded) + " holds what belongs at " +
                    to_text(places.moves.front().found) + ")";
    if (places.nowhere > 0)
      finding.cause += ", and " + human_count(static_cast<std::uint64_t>(places.nowhere)) +
                       (places.nowhere == 1 ? " holds" : " hold") +
                       " data that the reference does not have";
    finding.cause += ".";
    if (places.doubled > 0)
      finding.cause += " " + human_count(static_cast<std::uint64_t>(places.doubled)) +
                       (places.doubled == 1 ? " is" : " are") +
                       " a second copy of a correctly placed chunk: the right bytes for that "
                       "position are not in this tensor.";
    finding.cause += rounded_text(fqns_with_rounded_values(c, {&one}));
    finding.evidence = {{"family", std::string("partly")},
                        {"tiles", places.tiles},
                        {"tiles_elsewhere", count_of(places.moves.size())},
                        {"tiles_nowhere", places.nowhere},
                        {"second_copies", places.doubled},
                        {"moves", moves_of(c, {&one})},
                        {"decided", false}};
    findings.push_back(std::move(finding));
  }
}

const Rule kTilesExchanged = {
    .id = "tiles-exchanged",
    .depth = Depth::kHeaders,
    .title = "Chunks are saved at each other's positions",
    .teaches =
        "If chunks are saved with each other's boxes, because ranks were numbered along the wrong "
        "axis or files were mixed up, the checkpoint is complete and loads without an error. With "
        "--against a checkpoint of the same step every chunk is searched for in the reference: if "
        "all are found and cover the tensor, each gets its true box back and no byte moves. Chunks "
        "with equal contents stay where they are. If only some chunks are found, that is reported "
        "and nothing is repaired. Compared with another step no bytes are equal; there the first "
        "values of each chunk are correlated with all positions, and it is reported only if every "
        "chunk matches one position far better than any other. Without --data a chunk is read to "
        "its end only if its first 4 KiB differ from those of its position.",
    .lesson = {.drawing = R"(
  a matrix in 2 x 2 tiles

  reference               saved
  ┌────────┬────────┐     ┌────────┬────────┐
  │   A    │   B    │     │   A    │   C    │
  ├────────┼────────┤     ├────────┼────────┤
  │   C    │   D    │     │   B    │   D    │
  └────────┴────────┘     └────────┴────────┘
  every tile is there, two of them under each other's box
)",
               .remedy = "`shardwright repair --against REFERENCE` gives each chunk the box where "
                         "the reference has its bytes: lossless, no byte moves. If a chunk is not "
                         "found in the reference, only an earlier step helps."},
    .cause_of = ExplainedSymptoms::kTilesIfRepaired,
    .splits_rows_of_rank = true,
};

}  // namespace shw
