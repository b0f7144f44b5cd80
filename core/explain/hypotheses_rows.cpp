// Hypotheses about one dimension: shards, uneven splits, halves, vocabularies, extra state, other
// models.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/mesh/mesh.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxRowRanks = 4096;  // larger ratios are not ratios of world sizes

// True if torch.chunk splits `extent` into `parts` with a part of `length`.
bool is_chunk_length(std::int64_t extent, std::int64_t parts, std::int64_t length) {
  if (parts < 2) return false;
  std::int64_t full = chunk_of(extent, parts, 0).size;
  if (length == full) return true;
  if (full == 0) return false;
  std::int64_t whole = extent / full, rest = extent % full;
  if (length == rest && rest != 0) return true;
  // Ranks beyond those with rows have none.
  return length == 0 && whole + (rest != 0 ? 1 : 0) < parts;
}

enum class Fit : std::uint8_t { kNo, kPossible, kExact };

// Whether one side published a part of `whole`; its run had `ranks` ranks, if known.
Fit fit_if_one_side_is_sharded(std::int64_t part, std::int64_t whole,
                               std::optional<std::int64_t> ranks) {
  if (part >= whole) return Fit::kNo;
  bool divides = part > 0 && whole % part == 0;
  if (!ranks) return divides || part == 0 ? Fit::kPossible : Fit::kNo;
  if (is_chunk_length(whole, *ranks, part)) return Fit::kExact;
  // Split along one mesh axis only.
  return divides && *ranks % (whole / part) == 0 ? Fit::kPossible : Fit::kNo;
}

struct Shared {
  Fit fit = Fit::kNo;
  std::int64_t save_ratio = 0, load_ratio = 0;  // reduced ratio of the world sizes
  std::optional<std::int64_t> extent;           // of the parameter, if it follows
};

// Extent of the parameter if both sides published parts of it: saved * W_save = current * W_load.
Shared infer_extent_from_two_parts(std::int64_t saved, std::int64_t current,
                                   std::optional<WorldSizes> worlds) {
  if (saved <= 0 || current <= 0) return {};
  std::int64_t divisor = std::gcd(saved, current);
  Shared shared{Fit::kNo, current / divisor, saved / divisor, std::nullopt};
  if (shared.save_ratio > kMaxRowRanks || shared.load_ratio > kMaxRowRanks) return {};
  if (!worlds) {
    shared.fit = Fit::kPossible;
    return shared;
  }
  auto by_save = checked_mul(saved, worlds->save), by_load = checked_mul(current, worlds->load);
  bool cut = worlds->save > 1 && worlds->load > 1;  // the part of a single rank is the whole
  if (cut && by_save && by_load && *by_save == *by_load) {
    shared.fit = Fit::kExact;
    shared.extent = by_save;
  } else if (cut && worlds->save % shared.save_ratio == 0 &&
             worlds->load % shared.load_ratio == 0 &&
             worlds->save / shared.save_ratio == worlds->load / shared.load_ratio) {
    shared.fit = Fit::kPossible;
  }
  return shared;
}

Hypothesis local_shard_hypothesis(const ShapeCase& shapes, FaultSide wrong, Fit fit) {
  const NameTraits& traits = shapes.traits;
  Hypothesis one{"H-L", &kLocalSavedAsGlobal, wrong};
  double base = traits.state ? 0.5 : traits.known ? 0.2 : 0.4;
  if (traits.half && traits.state) base = 0.45;
  one.confidence = fit == Fit::kExact ? base + 0.45 : base;
  if (shapes.worlds && fit != Fit::kExact) one.confidence = base / 2;
  one.evidence.emplace_back("dim", static_cast<std::int64_t>(shapes.differing[0]));
  return one;
}

// True if it is unlikely that both runs saved one rank's part: weights rarely are, so without known
// world sizes only ratios up to kMaxOfWeights are believed.
bool is_unlikely_ratio(const ShapeCase& shapes, const Shared& shared) {
  constexpr std::int64_t kMaxOfWeights = 8;
  return !shapes.worlds && shapes.traits.known && !shapes.traits.state &&
         std::max(shared.save_ratio, shared.load_ratio) > kMaxOfWeights;
}

void add_hypothesis_one_side(const ShapeCase& shapes, bool saved_is_part,
                             std::vector<Hypothesis>& all) {
  std::size_t dim = shapes.differing[0];
  std::int64_t part = (saved_is_part ? shapes.message.saved : shapes.message.current)[dim];
  std::int64_t whole = (saved_is_part ? shapes.message.current : shapes.message.saved)[dim];
  std::optional<std::int64_t> ranks;
  if (shapes.worlds) ranks = saved_is_part ? shapes.worlds->save : shapes.worlds->load;
  Fit fit = fit_if_one_side_is_sharded(part, whole, ranks);
  if (fit == Fit::kNo) return;
  FaultSide wrong = saved_is_part ? FaultSide::kCheckpoint : FaultSide::kRequest;
  Hypothesis one = local_shard_hypothesis(shapes, wrong, fit);
  if (saved_is_part) {
    one.title = "one rank's shard was saved as the whole tensor";
    one.text = fmt::format(
        "The tensor was not a DTensor when it was saved: every rank saved its shard as the whole "
        "tensor, and one was kept{}. The true size of dim {} is {}. The repair puts the kept shard "
        "where its rank's chunk is; the rest is lost, but masters can be refilled from the model.",
        part == 0 ? ", the empty one of a rank that owns no rows" : "", dim, whole);
    one.decide = fmt::format(
        "Check the model's tensor in the same checkpoint: if it has {} in dim {} while its state "
        "has {}, this is the cause.",
        whole, dim, part);
  } else {
    one.title = "the loader expects one rank's shard";
    one.text =
        "The checkpoint is fine: it holds the whole tensor. The loading optimizer keeps its states "
        "as plain local tensors and expects only its shard. Nothing to repair on disk; fix the "
        "loader (TransformerEngine #2795).";
    one.decide =
        "Check the model's tensor in the same checkpoint: if it has the state's saved shape, " +
        to_text(shapes.message.saved) + ", the checkpoint is right.";
  }
  one.command = check_command();
  if (part > 0 && whole % part == 0) one.evidence.emplace_back("shards", whole / part);
  one.evidence.emplace_back("parameter_dim", whole);
  all.push_back(std::move(one));
}

}  // namespace

void add_hypothesis_local_as_global(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (shapes.differing.size() != 1) return;
  std::size_t dim = shapes.differing[0];
  std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
  add_hypothesis_one_side(shapes, true, all);
  add_hypothesis_one_side(shapes, false, all);
  Shared shared = infer_extent_from_two_parts(saved, current, shapes.worlds);
  if (shared.fit == Fit::kNo || is_unlikely_ratio(shapes, shared)) return;
  Hypothesis one = local_shard_hypothesis(shapes, FaultSide::kBoth, shared.fit);
  std::string ratio = fmt::format("{}:{}", shared.save_ratio, shared.load_ratio);
  one.title = "both runs used one rank's shard as the whole tensor";
  one.text =
      "Both runs treated a rank's shard as the whole tensor (the state is not a DTensor): the "
      "ratio of world sizes is " +
      ratio + ", saved to loaded.";
  if (shared.extent)
    one.text +=
        fmt::format(" The parameter's dim {} is {} = {} x {} = {} x {}.", dim, *shared.extent,
                    saved, shapes.worlds->save, current, shapes.worlds->load);
  one.text +=
      " The checkpoint has only one shard, the other ranks' rows are lost; the loader needs the "
      "same fix (TransformerEngine #2795).";
  one.decide = fmt::format(
      "Check that the world sizes of both runs are as {}, and the parameter's shape: dim {} must "
      "be {}.",
      ratio, dim,
      shared.extent ? std::to_string(*shared.extent)
                    : fmt::format("{} x the ranks that saved", saved));
  one.command = check_command();
  one.evidence.emplace_back("world_ratio", ratio);
  if (shared.extent) one.evidence.emplace_back("parameter_dim", *shared.extent);
  all.push_back(std::move(one));
}

void add_hypothesis_uneven(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (shapes.differing.size() != 1) return;
  std::size_t dim = shapes.differing[0];
  std::int64_t saved = shapes.message.saved[dim], current = shapes.message.current[dim];
  std::int64_t small = std::min(saved, current), large = std::max(saved, current);
  if (small == 0 || large % small == 0) return;
  const NameTraits& traits = shapes.traits;
  Hypothesis one{"H-U", &kLocalSavedAsGlobal, FaultSide::kEither};
  one.confidence = traits.state        ? (traits.vocabulary ? 0.65 : 0.45)
                   : traits.vocabulary ? 0.1
                   : traits.known      ? 0.12
                                       : 0.25;
  one.title = "an uneven shard was saved as the whole tensor";
  one.text = fmt::format(
      "{} and {} are not multiples of each other: ranks that own different numbers of rows (padded "
      "vocabulary, flat buckets) each saved theirs as the whole tensor (Megatron-LM #4129). If the "
      "save did this, the other ranks' rows are lost.",
      saved, current);
  one.decide = fmt::format(
      "Check the rows per rank: one rank must own exactly {} rows of this tensor in the run that "
      "saved. The rank that wrote the chunk shows which.",
      saved);
  one.command = check_command();
  one.evidence.emplace_back("dim", static_cast<std::int64_t>(dim));
  all.push_back(std::move(one));
}

void add_hypothesis_halves(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if (!shapes.traits.half || !shapes.traits.state) return;
  if (shapes.differing != std::vector<std::size_t>{0}) return;
  std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  std::int64_t small = std::min(saved, current), large = std::max(saved, current);
  if (small == 0 || large % small != 0) return;
  std::int64_t ratio = large / small;
  FaultSide wrong = saved < current ? FaultSide::kCheckpoint : FaultSide::kRequest;
  Hypothesis one{"H-W", &kGluSplitLocal, wrong, 0.75};
  one.title = wrong == FaultSide::kCheckpoint
                  ? "optimizer state of a gated weight was split at the wrong row"
                  : "the loader splits a gated weight's state at the wrong row";
  one.text = wrong == FaultSide::kCheckpoint
                 ? fmt::format(
                       "The state was split at half of one rank's shard instead of half of the "
                       "whole weight: both halves are {} times too short, both hold rows of W, and "
                       "all of V is lost. 1 of every {} elements of the pair is left. The model's "
                       "weights are not affected.",
                       ratio, ratio)
                 : fmt::format(
                       "The checkpoint is fine; the loader expects 1 of every {} rows because it "
                       "splits at half of its shard. Nothing to repair on disk.",
                       ratio);
  one.decide = fmt::format(
      "The model's own _w and _v halves have the full {} rows, and their states the same ratio {} "
      "everywhere; it is the tensor-parallel size times the ranks that own rows of this weight.",
      large, ratio);
  one.command = check_command();
  one.evidence.emplace_back("dim", std::int64_t{0});
  one.evidence.emplace_back("ratio", ratio);
  all.push_back(std::move(one));
}

namespace {

// accelerate names a parameter within its module alone: "weight". Of the matrices of a model only
// the embedding and the output layer differ by a few of many rows.
bool may_be_vocabulary(const ShapeCase& shapes) {
  constexpr std::int64_t kMinTokens = 1024;
  const Extents &saved = shapes.message.saved, &current = shapes.message.current;
  if (shapes.message.name != "weight" || saved.size() != 2 || current.size() != 2) return false;
  const std::int64_t small = std::min(saved[0], current[0]), large = std::max(saved[0], current[0]);
  return small >= kMinTokens && small > saved[1] && large - small <= small / 20;
}

// A few rows more without padding: tokens were added on one side.
void add_hypothesis_resized(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  std::int64_t more = std::max(saved, current) - std::min(saved, current);
  if (shapes.traits.state || more > std::max<std::int64_t>(64, saved / 20)) return;
  std::string rows = plural(static_cast<std::uint64_t>(more), "row");
  Hypothesis one{"H-V", &kVocabularyPadding, FaultSide::kEither, 0.75};
  one.title = saved > current
                  ? "tokens were added before the save, but the loading model does not have them"
                  : "the loader has added tokens that the checkpoint does not have";
  one.text = "The vocabularies differ by " + rows +
             ": resize_token_embeddings, or a different tokenizer. Nothing is damaged. Give the "
             "model the saved number of rows, load, then resize.";
  one.decide = "Compare the tokenizer length of both runs, and vocab_size in config.json.";
  one.command = "shardwright ls CHECKPOINT embed";
  one.evidence.emplace_back("rows", more);
  all.push_back(std::move(one));
}

}  // namespace

// The number of ranks of which `part` is one rank's rows of a vocabulary with `whole` rows, where
// both are padded for different numbers of ranks; 0 if there is none.
std::int64_t ranks_of_padded_part(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kMinRows = 4096, kPadding = 128;  // Megatron's default per rank
  if (part < kMinRows) return 0;
  for (std::int64_t ranks = 2; ranks <= 64; ranks *= 2) {
    const std::int64_t rows = part * ranks;
    const std::int64_t difference = rows > whole ? rows - whole : whole - rows;
    if (difference != 0 && difference < kPadding * ranks) return ranks;
  }
  return 0;
}

void add_hypothesis_padded_part(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  const bool is_bare = shapes.message.name.find('.') == std::string::npos;
  if ((!shapes.traits.vocabulary && !is_bare) || shapes.traits.bias ||
      shapes.differing != std::vector<std::size_t>{0} || shapes.message.saved.size() != 2)
    return;
  const std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  const std::int64_t ranks =
      ranks_of_padded_part(std::min(saved, current), std::max(saved, current));
  if (ranks == 0) return;
  const bool is_part_saved = saved < current;
  Hypothesis one{"H-VP", &kShapeMismatch, FaultSide::kRequest, 0.75};
  one.title = fmt::format("{} the rows of one of {} tensor-parallel ranks, {} those of all",
                          is_part_saved ? "the file has" : "the model asks for", ranks,
                          is_part_saved ? "the model asks for" : "the file has");
  one.text = fmt::format(
      "{} x {} is {}, next to {}: the vocabulary is sharded over the ranks, and Megatron pads it "
      "to a multiple of 128 times their number, so the totals differ by padding. Load with the "
      "tensor-parallel size of the save, or convert the checkpoint to the other size.",
      std::min(saved, current), ranks, std::min(saved, current) * ranks, std::max(saved, current));
  one.decide = "Compare the tensor-parallel sizes of both runs.";
  one.command = "shardwright info CHECKPOINT";
  one.evidence.emplace_back("tp", ranks);
  all.push_back(std::move(one));
}

void add_hypothesis_vocabulary(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  if ((!shapes.traits.vocabulary && !may_be_vocabulary(shapes)) ||
      shapes.differing != std::vector<std::size_t>{0})
    return;
  std::int64_t saved = shapes.message.saved[0], current = shapes.message.current[0];
  std::int64_t small = std::min(saved, current), large = std::max(saved, current);
  std::int64_t unit = 0;  // least multiple that rounds one extent up to the other
  for (std::int64_t size = 8; size <= 128 * 64 && unit == 0; size *= 2) {
    if (large % size == 0 && large - small < size) unit = size;
  }
  if (small == 0) return;
  if (unit == 0) {
    add_hypothesis_resized(shapes, all);
    return;
  }
  Hypothesis one{"H-V", &kVocabularyPadding, FaultSide::kEither, 0.8};
  one.title = "the vocabulary is padded differently";
  one.text = fmt::format(
      "{} is {} rounded up to a multiple of {} (divisible_by times the tensor-parallel size). The "
      "last {} rows are padding; they may be removed or added only if no token has such an id.",
      large, small, unit, large - small);
  one.decide =
      "Compare the tokenizer's vocabulary size and make_vocab_size_divisible_by of both runs.";
  one.command = check_command("--against REFERENCE");
  one.evidence.emplace_back("multiple", unit);
  one.evidence.emplace_back("padding_rows", large - small);
  all.push_back(std::move(one));
}

void add_hypothesis_extra_state(const ShapeCase& shapes, std::vector<Hypothesis>& all) {
  Hypothesis one{"H-X", nullptr, FaultSide::kEither, 0.95};
  one.title = "the extra state of a layer has a different length";
  one.text = "_extra_state is a pickle of TransformerEngine's FP8 recipe, as bytes: " +
             to_text(shapes.message.saved) + " and " + to_text(shapes.message.current) +
             " are lengths of two pickles, not shapes (TransformerEngine #1860). For recipes "
             "without history it holds no data and can be skipped on load; delayed scaling must be "
             "calibrated again. No weight is affected.";
  one.decide = "Compare the FP8 recipe and TransformerEngine version of both runs.";
  one.command = "shardwright ls CHECKPOINT _extra_state";
  all.push_back(std::move(one));
}

}  // namespace shw
