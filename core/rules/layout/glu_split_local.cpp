// A gated weight is saved as two halves, _w and _v (Megatron-LM #4423). The saver split
// one rank's optimizer state as if it were the whole item: both halves hold rows of W
// only, from the first rank that owns any. With chunk t per TP rank, q rows each, of M /
// T:
//
//   _w chunk t -> W rows [t M/T, + q)      _v chunk t -> W rows [t M/T + q, + q)      V is gone
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/states/split_pairs.h"
#include "core/rules/layout/wrong_request.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

PartlyLost place_w_half_in_whole(const Checkpoint& c, const SplitPair& pair) {
  PartlyLost part{pair.w.state, copy_of(c.shape(pair.w.parameter)), {}, {}};
  std::int64_t item = part.expected[0] / pair.chunks;
  auto place = [&](TensorId state, std::int64_t shift) {
    for (ChunkId chunk : c.chunks(state)) {
      Extents at(part.expected.size(), 0);
      at[0] = c.offsets(chunk)[0] / pair.rows * item + shift;
      part.retained_chunks.push_back(whole_retained_chunk(chunk, c.sizes(chunk), at));
    }
  };
  place(pair.w.state, 0);
  place(pair.v.state, pair.rows);
  return part;
}

Finding describe_split(const Checkpoint& c, const std::vector<SplitPair>& pairs,
                       std::vector<PartlyLost> parts) {
  Finding finding{.rule = "glu-split-local"};
  finding.link = "Megatron-LM #4423";
  LostCount loss = loss_of(parts);
  const SplitPair& first = pairs.front();
  for (const PartlyLost& part : parts) finding.subjects.emplace_back(c.fqn(part.tensor));
  finding.cause = fmt::format(
      "The save split the optimizer state of gated weights at half of one rank's shard instead of "
      "half of the whole, so both halves hold only rows of the first half, and only 1 of {} rows "
      "is there.",
      first.ratio);
  finding.evidence = {
      {"saved_shape", copy_of(c.shape(first.w.state))},
      {"shape_of_the_parameter", copy_of(c.shape(first.w.parameter))},
      {"factor", first.ratio},
      {"tensor_parallel_ranks", first.chunks},
      {"rows_each_of_them_kept", first.rows},
      {"pairs", static_cast<std::int64_t>(pairs.size())},
      {"total_kept_elements", loss.kept},
      {"total_lost_elements", loss.lost},
  };
  if (loss.refilled != 0) finding.evidence.emplace_back("refilled_from_the_model", loss.refilled);
  finding.remedy =
      Remedy{"retile", false,
             fmt::format("Put the rows of both saved halves where they belong in the first half "
                         "(_w) and mask the rest: {} elements kept, {} lost{}.",
                         loss.kept, loss.lost,
                         loss.refilled == 0
                             ? ""
                             : fmt::format(", {} of them refilled from the model", loss.refilled))};
  for (PartlyLost& part : parts) finding.diagnoses.emplace_back(std::move(part));
  return finding;
}

void find_local_glu_splits(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  report_wrong_requests(facts, RequestKind::kHalves, "glu-split-local", "Megatron-LM #4423",
                        findings);
  std::vector<SplitPair> pairs = split_pairs(facts);
  if (pairs.empty()) return;
  std::vector<PartlyLost> parts;
  std::map<TensorId, std::vector<std::size_t>> moments;  // by parameter of the first half
  for (const SplitPair& pair : pairs) {
    PartlyLost w = place_w_half_in_whole(c, pair);
    PartlyLost v{pair.v.state, copy_of(c.shape(pair.v.parameter)), {}, {}};
    if (pair.role == StateRole::kMaster) {
      w.refill_from = c.fqn(pair.w.parameter);
      v.refill_from = c.fqn(pair.v.parameter);
    }
    if (pair.role == StateRole::kMoment) moments[pair.w.parameter].push_back(parts.size());
    parts.push_back(std::move(w));
    parts.push_back(std::move(v));
  }
  for (const auto& [parameter, indices] : moments) {
    std::vector<PartlyLost*> same_parameter;
    for (std::size_t i : indices) same_parameter.push_back(&parts[i]);
    intersect_moment_rows(same_parameter);
  }
  findings.push_back(describe_split(c, pairs, std::move(parts)));
}

}  // namespace

const Rule kGluSplitLocal = {
    .id = "glu-split-local",
    .depth = Depth::kMetadata,
    .title = "Optimizer state of a gated weight was split at the wrong row",
    .teaches =
        "A gated weight (SwiGLU) is saved as two halves, W and V. The save split the optimizer "
        "state at half of one rank's shard instead of half of the whole weight: both saved halves "
        "then hold rows of W, only those of the first rank that owns any, and V's rows are lost. "
        "The model's weights are not affected. The repair puts the rows of both halves where they "
        "belong in W and masks the rest; only another checkpoint has the lost rows.",
    .lesson = {.drawing = R"(
  the weight, 8 rows   │ W0 │ W1 │ W2 │ W3 │ V0 │ V1 │ V2 │ V3 │
  owned by             └───── rank 0 ──────┴───── rank 1 ──────┘

  expected   _w        │ W0 │ W1 │ W2 │ W3 │
             _v                            │ V0 │ V1 │ V2 │ V3 │

  saved      _w        │ W0 │ W1 │            cut at half of rank 0's rows
             _v                  │ W2 │ W3 │  rows of W; V is nowhere
)",
               .remedy =
                   "`shardwright repair` puts the surviving rows back into W and masks the rest: "
                   "the plan says how many elements are lost. Only another checkpoint has them.",
               .link = "https://github.com/NVIDIA/Megatron-LM/pull/4423"},
    .cause_of = ExplainedSymptoms::kTiles,
    .makes_shapes_doubtful = true,
    .run = find_local_glu_splits,
};

}  // namespace shw
