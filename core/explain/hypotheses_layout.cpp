// Hypotheses about transposes, moved axes, expert axes and tensor parallelism.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::int64_t to_signed_64(std::size_t value) {
  return static_cast<std::int64_t>(value);
}

// The k >= 2 with `large` = k * `small`; 0 if there is none.
std::int64_t exact_factor(std::int64_t small, std::int64_t large) {
  if (small <= 0 || large <= small || large % small != 0) return 0;
  return large / small;
}

bool is_permutation_of(ExtentsView a, ExtentsView b) {
  Extents x(a.begin(), a.end()), y(b.begin(), b.end());
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}

// Number of ranks of the faulty run; nullopt if unknown.
std::optional<std::int64_t> ranks_of(const ShapeCase& shapes, FaultSide wrong) {
  if (!shapes.worlds) return std::nullopt;
  return wrong == FaultSide::kRequest ? shapes.worlds->load : shapes.worlds->save;
}

// True if the world size is divisible by k.
bool fits(const ShapeCase& shapes, FaultSide wrong, std::int64_t k) {
  auto ranks = ranks_of(shapes, wrong);
  return !ranks || *ranks % k == 0;
}

std::string mesh_option(const ShapeCase& shapes, FaultSide wrong, const char* axis,
                        std::int64_t k) {
  auto ranks = ranks_of(shapes, wrong);
  std::string rest = ranks ? std::to_string(*ranks / k) : "N";
  return fmt::format("--spec SPEC.json --mesh dp={},{}={}", rest, axis, k);
}

struct Moved {
  std::size_t grown = 0, shrunk = 0;  // dims of growth and shrinkage from saved to current
  std::int64_t k = 0;
};
std::optional<Moved> find_moved_factor(const ShapeCase& shapes) {
  if (shapes.differing.size() != 2) return std::nullopt;
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  for (bool swap : {false, true}) {
    std::size_t a = shapes.differing[swap ? 1 : 0], b = shapes.differing[swap ? 0 : 1];
    std::int64_t k = exact_factor(saved[a], current[a]);
    if (k != 0 && k == exact_factor(current[b], saved[b])) return Moved{a, b, k};
  }
  return std::nullopt;
}

std::string axis_text(const ShapeCase& shapes, FaultSide wrong, std::int64_t k) {
  switch (wrong) {
    case FaultSide::kRequest:
      return fmt::format(
          "The checkpoint is fine; the loader is wrong: it transposed a sharded tensor and kept "
          "the old placements, so it expects {}, one axis {} times too long and the other {} times "
          "too short. Nothing to repair on disk; fix the loader.",
          to_text(shapes.message.current), k, k);
    case FaultSide::kCheckpoint:
      return "The checkpoint was saved with placements that still named the old axis after a "
             "transpose: " +
             to_text(shapes.message.saved) + " should be " + to_text(shapes.message.current) +
             ". Every chunk holds the right bytes at the wrong offsets; the repair corrects the "
             "offsets and moves no byte.";
    case FaultSide::kBoth:
    case FaultSide::kEither:
      break;
  }
  return fmt::format(
      "The factor {} moved from one axis to the other: placements were kept while the tensor was "
      "transposed, either in the save (then the repair corrects offsets, nothing is lost) or in "
      "the loader (then nothing needs repair on disk).",
      k);
}

}  // namespace

void add_hypothesis_transposed(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (shapes.differing.size() < 2 || !is_permutation_of(saved, current)) return;
  Hypothesis one{"H-T", &kTransposed, FaultSide::kEither};
  one.confidence = saved.size() == 2 ? 0.7 : 0.6;
  one.title = "the tensor is transposed";
  one.text =
      "The same numbers in a different order: one side stores the weight transposed (Conv1D "
      "against Linear, fused experts, an export that skipped the transpose). The order of the "
      "elements differs too, so a reshape gives wrong weights: transpose it, or use the export or "
      "class that stores it the other way.";
  one.decide =
      "Check whether other tensors of this kind differ in the same way, and which order the "
      "model's code uses; if the dimension is sharded over ranks, a placement on the wrong axis is "
      "more likely.";
  one.command = check_command("--against REFERENCE");
  std::vector<std::string> dims;
  for (std::size_t d : shapes.differing) dims.push_back(std::to_string(d));
  one.evidence.emplace_back("dims", dims);
  all.push_back(std::move(one));
}

void add_hypothesis_axis_moved(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  auto found = find_moved_factor(shapes);
  if (!found) return;
  const Extents& saved = shapes.message.saved;
  // The mistake multiplies the axis that was sharded before the transpose, the first of the last
  // two in [E, D, I]: the side where it is too long is wrong.
  bool stacked = saved.size() == 3 && shapes.differing == std::vector<std::size_t>{1, 2};
  Hypothesis one{"H-A", &kPlacementAxisMoved, FaultSide::kEither};
  if (stacked) one.wrong = found->grown == 1 ? FaultSide::kRequest : FaultSide::kCheckpoint;
  if (one.wrong == FaultSide::kEither) {
    if (!fits(shapes, FaultSide::kCheckpoint, found->k) &&
        !fits(shapes, FaultSide::kRequest, found->k))
      return;
  } else if (!fits(shapes, one.wrong, found->k)) {
    return;
  }
  bool permuted = is_permutation_of(saved, shapes.message.current);
  one.confidence = permuted ? (stacked ? 0.6 : 0.5) : (stacked ? 0.85 : 0.6);
  if (stacked && shapes.traits.expert && !permuted) one.confidence = 0.9;
  one.title = one.wrong == FaultSide::kRequest      ? "the loader has a placement on the wrong axis"
              : one.wrong == FaultSide::kCheckpoint ? "a placement was recorded for the wrong axis"
                                                    : "a placement is on the wrong axis";
  one.text = axis_text(shapes, one.wrong, found->k);
  one.decide =
      "Compare with the hidden size: on the side that is right, one axis has exactly the hidden "
      "size (norm.weight, embed_tokens and the router show it). In the saved gate and down "
      "projections of one layer, gate [E, I, H] and down [E, H, I] belong together.";
  one.command = check_command("--spec SPEC.json");
  one.evidence.emplace_back("axes",
                            Extents{to_signed_64(found->grown), to_signed_64(found->shrunk)});
  one.evidence.emplace_back("factor", found->k);
  all.push_back(std::move(one));
}

void add_hypothesis_expert_axis(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (!shapes.traits.expert || shapes.differing != std::vector<std::size_t>{0}) return;
  std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  FaultSide wrong = saved < current ? FaultSide::kCheckpoint : FaultSide::kRequest;
  std::int64_t k = exact_factor(std::min(saved, current), std::max(saved, current));
  if (k == 0 || !fits(shapes, wrong, k)) return;
  Hypothesis one{"H-E", &kAxisDropped, wrong, shapes.traits.state ? 0.4 : 0.6};
  one.title = wrong == FaultSide::kCheckpoint ? "the save left out the expert axis"
                                              : "the loader leaves the expert axis out";
  one.text =
      wrong == FaultSide::kCheckpoint
          ? fmt::format(
                "The save used a mesh without the expert-parallel axis of {} ranks: they all wrote "
                "the same box and only one of {} was kept. 1 of every {} experts is there; "
                "per-rank optimizer files (optimizer_rank_R.pt) can restore all of them.",
                k, k, k)
          : fmt::format(
                "The checkpoint holds the experts of all {} expert-parallel ranks; the loader "
                "expects those of one rank. Nothing to repair on disk.",
                k);
  one.decide = fmt::format(
      "Check the expert-parallel size of the faulty run: it must be {}. Rows times the number of "
      "expert keys, over 2 * moe_intermediate, must be the number of experts that the router has.",
      k);
  one.command = check_command(mesh_option(shapes, wrong, "ep", k));
  one.evidence.emplace_back("dim", std::int64_t{0});
  one.evidence.emplace_back("ep", k);
  all.push_back(std::move(one));
}

namespace {

void add_hypothesis_counted_twice(const ShapeCase& shapes, FaultSide wrong, std::int64_t k,
                                  std::vector<Hypothesis>& all) {
  if (!fits(shapes, wrong, k)) return;
  Hypothesis one{"H-TP", &kShapeMismatch, wrong, 0.55};
  one.title = "the vocabulary was multiplied by the tensor-parallel size twice";
  one.text = fmt::format(
      "{} treated the full number of rows as one rank's shard and multiplied it by {} "
      "(Megatron-Bridge #5353). The rows beyond the vocabulary hold no data.",
      wrong == FaultSide::kRequest ? "The loader" : "The save", k);
  one.decide =
      "The vocabulary size of the tokenizer: check which of the two row counts matches it, "
      "including padding.";
  one.command = check_command("--spec SPEC.json");
  one.evidence.emplace_back("dim", std::int64_t{0});
  one.evidence.emplace_back("tp", k);
  all.push_back(std::move(one));
}

}  // namespace

void add_hypothesis_tensor_parallel(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (shapes.differing.size() != 1) return;
  std::size_t dim = shapes.differing[0];
  std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
  FaultSide wrong = saved < current ? FaultSide::kCheckpoint : FaultSide::kRequest;
  std::int64_t k = exact_factor(std::min(saved, current), std::max(saved, current));
  if (k == 0) return;
  if (shapes.traits.vocabulary && dim == 0 && !shapes.traits.state) {
    bool doubled_by_loader = saved < current;
    add_hypothesis_counted_twice(
        shapes, doubled_by_loader ? FaultSide::kRequest : FaultSide::kCheckpoint, k, all);
  }
  if (!fits(shapes, wrong, k)) return;
  const NameTraits& traits = shapes.traits;
  Hypothesis one{"H-TP", &kAxisDropped, wrong};
  // For a weight, tensor-parallel sizes are powers of two; any other factor is unlikely.
  const bool is_odd =
      traits.known && !shapes.worlds && !traits.state && !traits.expert && (k & (k - 1)) != 0;
  // A convolution's window is never cut.
  const bool is_window = is_window_dim(shapes.message, dim) && !traits.expert;
  one.confidence = traits.replicated || is_odd || is_window ? 0.08
                   : traits.state                           ? 0.3
                   : traits.expert && dim == 0              ? 0.35
                   : !traits.known                          ? 0.4
                   : !traits.split_by_tensor_parallelism    ? 0.2
                                                            : 0.55;
  one.title = wrong == FaultSide::kCheckpoint ? "the save left out the tensor-parallel axis"
                                              : "the loader leaves the tensor-parallel axis out";
  one.text = wrong == FaultSide::kCheckpoint
                 ? fmt::format(
                       "Each tensor-parallel rank saved its shard as the whole tensor: dim {} is "
                       "too short by the tensor-parallel size, {}, and only one of every {} shards "
                       "was kept. The ranks that wrote the chunks show which; the rest is lost "
                       "unless another checkpoint has it.",
                       dim, k, k)
                 : fmt::format(
                       "The checkpoint is complete; the loader does not know its tensor-parallel "
                       "mesh and expects one rank's shard (1 of {}). Nothing to repair on disk.",
                       k);
  one.decide = fmt::format(
      "Check the tensor-parallel size of the faulty run: it must be {}. Look at the pattern: "
      "column-parallel weights are short in dim 0, row-parallel ones in dim 1, norms in none.",
      k);
  one.command = check_command(mesh_option(shapes, wrong, "tp", k));
  one.evidence.emplace_back("dim", to_signed_64(dim));
  one.evidence.emplace_back("tp", k);
  all.push_back(std::move(one));
}

}  // namespace shw
