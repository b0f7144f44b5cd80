// Compares with a reference: shapes are right and all values exist, but in another order. One pass
// reads both checkpoints for blocks-permuted and differs-from-reference
// (differs_from_reference.h).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/reference/block_compare.h"
#include "core/facts/reference/block_words.h"
#include "core/facts/reference/comparison_words.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/slice_likeness.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/reference/tile_pattern.h"
#include "core/facts/reference/tile_places.h"
#include "core/facts/reference/transposed_constraint.h"
#include "core/rules/reference/differs_from_reference.h"
#include "core/rules/reference/foreign_tiles.h"
#include "core/rules/reference/tiles_exchanged.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Fewer elements may be a permutation by chance.
constexpr std::int64_t kMinCompared = 8;
// At Depth::kHeaders tensors up to this size are compared by rows.
constexpr std::int64_t kSmallBytes = 256 << 10;

// Evidence key: the smallest margin of the best match over any other.
constexpr std::string_view kMargin = "margin_of_correlation";

// True if every chunk is a block and every rank wrote two of them.
bool has_two_blocks_per_rank(const Checkpoint& checkpoint, TensorId tensor,
                             const BlockOrder& order) {
  std::map<std::uint32_t, int> by_writer;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    if (volume(checkpoint.sizes(chunk)) == 0) continue;
    auto writer = checkpoint.writer(chunk);
    if (!writer || checkpoint.sizes(chunk)[order.dim] != order.block) return false;
    ++by_writer[*writer];
  }
  return !by_writer.empty() && std::all_of(by_writer.begin(), by_writer.end(),
                                           [](const auto& one) { return one.second == 2; });
}

struct BlockOutcome {
  std::map<std::string, Finding> permuted;  // by the description of the order
  std::vector<MovedTiles> tiles, partly;
  std::vector<MovedTiles> like;     // chunks with other values, each similar to another place
  std::vector<MovedTiles> strange;  // of `partly` and `other`: tensors with distinguishable chunks
  DifferingTensors differing;
  std::set<TensorId> right;  // known to equal the reference
};

void add_permuted(const Checkpoint& c, TensorId tensor, BlockOrder order, BlockOutcome& outcome) {
  BlockPattern pattern = recognise_block_pattern(order, has_two_blocks_per_rank(c, tensor, order));
  OrderName named =
      name_of(pattern, order, row_kind_of(c.fqn(tensor), c.shape(tensor).size(), order.dim));
  std::string within =
      pattern.segments > 1 ? fmt::format(", within each of {} equal parts", pattern.segments) : "";
  const bool is_like = order.margin > 0;
  Finding& finding =
      outcome.permuted[fmt::format("{}{}{}{}", named.says, within, order.dim, is_like)];
  if (finding.subjects.empty()) {
    finding.rule = "blocks-permuted";
    finding.link = named.link;
    finding.cause = is_like ? fmt::format(
                                  "Training has changed {} since the reference, and along dim {} "
                                  "each slice correlates with exactly one reference slice, in a "
                                  "different order: {}{}. It loads without an error.",
                                  c.fqn(tensor), order.dim, named.says, within)
                            : fmt::format(
                                  "{} has the right shape and every value of the reference, in a "
                                  "different order along dim {}: {}{}. It loads without an error.",
                                  c.fqn(tensor), order.dim, named.says, within);
    finding.evidence = {{"family", named.family},
                        {"dimension", static_cast<std::int64_t>(order.dim)},
                        {"rows_a_block", order.block},
                        {"blocks", count_of(order.order.size())},
                        {"segments", pattern.segments}};
    Extents shown(order.order.begin(),
                  order.order.begin() +
                      static_cast<std::ptrdiff_t>(std::min(order.order.size(), kMaxEvidence)));
    finding.evidence.emplace_back("block_on_disk_of_true_block", std::move(shown));
    if (is_like) finding.evidence.emplace_back(std::string(kMargin), order.margin);
  }
  finding.subjects.emplace_back(c.fqn(tensor));
  finding.diagnoses.emplace_back(
      BlocksPermuted{tensor, order.dim, order.block, std::move(order.order)});
}

// Describes chunks in a known order as blocks: gate and up, heads, or a mesh read along its other
// axis. nullopt for two exchanged chunks.
std::optional<BlockOrder> as_named_block_order(const Checkpoint& c, const MovedTiles& moved) {
  auto order = block_order_from_tile_places(moved.places, moved.expected);
  if (!order || !same(moved.expected, c.shape(moved.tensor))) return std::nullopt;
  merge_consecutive_blocks(*order);
  BlockPattern pattern =
      recognise_block_pattern(*order, has_two_blocks_per_rank(c, moved.tensor, *order));
  bool mesh =
      pattern.family == BlockFamily::kAxesTransposed || pattern.family == BlockFamily::kSwizzled;
  bool rows =
      row_kind_of(c.fqn(moved.tensor), moved.expected.size(), order->dim) == RowKind::kGateUp;
  bool known = pattern.family != BlockFamily::kUnknown && (mesh || rows);
  return known ? order : std::nullopt;
}

// Result of comparing one tensor with the reference.
struct Compared {
  enum class Answer : std::uint8_t {
    kNothing,  // other shape
    kUnread,
    kEqual,
    kEqualAtStart,       // checked by the first 4 KiB of every chunk
    kExchanged,          // all chunks found at other places: `moved`
    kPartly,             // some chunks found: `moved`
    kPermuted,           // all rows found: `order`
    kAmbiguous,          // all rows found, with equal ones among them
    kSimilarToOnePlace,  // bytes differ, but each chunk is similar to one place: `moved`
    kOther,              // `moved`: chunks with enough distinct values
  };
  Answer answer = Answer::kNothing;
  MovedTiles moved = {};
  BlockOrder order = {};
};
using Answer = Compared::Answer;

bool identifies_tiles(Answer answer) {
  return answer == Answer::kExchanged || answer == Answer::kPartly ||
         answer == Answer::kSimilarToOnePlace || answer == Answer::kOther;
}

std::string words_of(const Compared& compared) {
  Encoder payload;
  payload.add(static_cast<std::uint64_t>(compared.answer));
  if (compared.answer == Answer::kPermuted) add(payload, compared.order);
  if (identifies_tiles(compared.answer)) {
    payload.add(
        std::vector<std::uint64_t>(compared.moved.expected.begin(), compared.moved.expected.end()));
    add(payload, compared.moved.places);
  }
  return packed_text(payload.take());
}

Result<Compared> compared_of(TensorId tensor, std::string_view told) {
  Decoder payload(std::as_bytes(std::span(told)));
  Compared out;
  SHW_TRY(std::uint64_t answer, payload.number());
  if (answer > static_cast<std::uint64_t>(Answer::kOther))
    return fail(ErrorKind::kIo, "another process sent a message that this version does not know");
  out.answer = static_cast<Answer>(answer);
  if (out.answer == Answer::kPermuted) {
    SHW_TRY(out.order, decode_block_order(payload));
  } else if (identifies_tiles(out.answer)) {
    SHW_TRY(auto expected, payload.numbers());
    out.moved.tensor = tensor;
    out.moved.expected.assign(expected.begin(), expected.end());
    SHW_TRY(out.moved.places, decode_tile_places(payload));
  }
  return out;
}

struct TensorAndReference {
  PiecedTensor image, truth;
};

std::optional<TensorAndReference> open_both_tensors(const Facts& facts, TensorId tensor,
                                                    TensorId other) {
  const Checkpoint& c = facts.checkpoint;
  auto dtype = common_dtype(c.dtype(tensor), facts.reference->dtype(other));
  auto image = dtype ? pieces_of(c, tensor, *dtype, facts.progress) : std::nullopt;
  auto truth = image ? pieces_of(*facts.reference, other, *dtype, facts.progress) : std::nullopt;
  if (!truth) return std::nullopt;
  return TensorAndReference{std::move(*image), std::move(*truth)};
}

// Compares rows of tensors that chunk places do not explain.
Compared compare_rows(const std::optional<TensorAndReference>& sides) {
  auto found = sides ? compare_blocks(sides->image, sides->truth) : std::nullopt;
  if (!found) return {Answer::kUnread};
  switch (found->answer) {
    case BlockAnswer::kSame:
      return {Answer::kEqual};
    case BlockAnswer::kPermuted:
      return {Answer::kPermuted, {}, std::move(found->order)};
    case BlockAnswer::kAmbiguous:
      return {Answer::kAmbiguous};
    case BlockAnswer::kDiffers:
      break;
  }
  return {Answer::kOther};
}

bool has_rows_to_compare(const Facts& facts, TensorId tensor, TensorId other) {
  ExtentsView shape = facts.checkpoint.shape(tensor);
  if (!same(shape, facts.reference->shape(other))) return false;  // other rules report shapes
  std::int64_t elements = volume(shape).value_or(0);
  if (elements < kMinCompared) return false;
  std::int64_t bytes = checked_mul(elements, std::int64_t{size_of(facts.checkpoint.dtype(tensor))})
                           .value_or(kSmallBytes + 1);
  return bytes <= kSmallBytes || is_read_whole(facts, tensor);
}

Compared compare_with_reference(const Facts& facts, TensorId tensor, TensorId other) {
  MovedTiles moved{tensor, copy_of(facts.reference->shape(other)),
                   find_tile_places(facts, tensor, other, is_read_whole(facts, tensor))};
  const PlacesAnswer places = moved.places.answer;
  if (places == PlacesAnswer::kInPlace)
    return {moved.places.sampled ? Answer::kEqualAtStart : Answer::kEqual};
  if (places == PlacesAnswer::kExchanged) return {Answer::kExchanged, std::move(moved)};
  Compared out;
  std::optional<TensorAndReference> sides;
  if (has_rows_to_compare(facts, tensor, other)) {
    sides = open_both_tensors(facts, tensor, other);
    out = compare_rows(sides);
  } else if (same(moved.expected, facts.checkpoint.shape(tensor)) && volume(moved.expected) != 0) {
    out.answer = places == PlacesAnswer::kUnread ? Answer::kUnread : Answer::kOther;
  }
  // Chunks may have distinct contents although rows do not.
  bool partly = places == PlacesAnswer::kPartly && moved.places.telling;
  if (partly && out.answer == Answer::kOther) return {Answer::kPartly, std::move(moved)};
  if (out.answer != Answer::kOther) return out;
  if (moved.places.likeness > 0) {
    out.answer = Answer::kSimilarToOnePlace;
  } else if (sides) {
    if (auto order = match_slices_by_correlation(sides->image, sides->truth))
      return {Answer::kPermuted, {}, std::move(*order)};
  }
  out.moved = std::move(moved);
  return out;
}

// Other rules report unreadable data on this side.
bool is_read_here(const Facts& facts, TensorId tensor) {
  for (ChunkId chunk : facts.checkpoint.chunks(tensor)) {
    const std::size_t i = index_of(chunk);
    const bool is_read = (facts.headers.empty() || facts.headers.has_value(i)) &&
                         (facts.data.empty() || facts.data.has_value(i));
    if (!is_read) return false;
  }
  return true;
}

void finalize(const Facts& facts, TensorId tensor, Compared compared, BlockOutcome& outcome) {
  const Checkpoint& c = facts.checkpoint;
  switch (compared.answer) {
    case Answer::kNothing:
      return;
    case Answer::kUnread:
      ++outcome.differing.not_read;
      if (is_read_here(facts, tensor)) outcome.differing.unread.emplace_back(c.fqn(tensor));
      return;
    case Answer::kEqual:
    case Answer::kEqualAtStart:
      outcome.right.insert(tensor);
      ++(compared.answer == Answer::kEqualAtStart ? outcome.differing.alike
                                                  : outcome.differing.equal);
      return;
    case Answer::kExchanged:
      outcome.tiles.push_back(std::move(compared.moved));
      return;
    case Answer::kPartly:
      outcome.strange.push_back(compared.moved);
      outcome.partly.push_back(std::move(compared.moved));
      return;
    case Answer::kPermuted:
      add_permuted(c, tensor, std::move(compared.order), outcome);
      return;
    case Answer::kAmbiguous:
      outcome.differing.ambiguous.emplace_back(c.fqn(tensor));
      return;
    case Answer::kSimilarToOnePlace:
      outcome.like.push_back(std::move(compared.moved));
      return;
    case Answer::kOther:
      outcome.differing.other.emplace_back(c.fqn(tensor));
      compared.moved.tensor = tensor;
      if (!compared.moved.places.strange.empty())
        outcome.strange.push_back(std::move(compared.moved));
      return;
  }
}

// True if most compared tensors are equal: the reference is of the same step, and differences are
// not progress.
bool is_reference_of_same_step(const BlockOutcome& outcome) {
  return outcome.differing.equal + outcome.differing.alike >
         count_of(outcome.differing.other.size() + outcome.like.size());
}

void resolve_tiles(const Facts& facts, BlockOutcome& outcome, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<MovedTiles> exchanged;
  bool same_step = is_reference_of_same_step(outcome);
  for (MovedTiles& moved : outcome.tiles) {
    if (!moved.places.telling && !same_step)
      outcome.differing.few_values.emplace_back(c.fqn(moved.tensor));
    else if (auto order = as_named_block_order(c, moved))
      add_permuted(c, moved.tensor, std::move(*order), outcome);
    else
      exchanged.push_back(std::move(moved));
  }
  report_exchanged(facts, exchanged, outcome.right, findings);
  report_exchanged(facts, outcome.like, outcome.right, findings, !same_step);
  report_known_displacements(facts, outcome.partly, findings);
  std::set<std::string_view> told =
      report_swapped_between_tensors(facts, outcome.strange, findings);
  told.merge(report_foreign_chunks(facts, outcome.strange, outcome.right, findings));
  std::erase_if(outcome.differing.other,
                [&](const std::string& fqn) { return told.contains(fqn); });
}

void report_permuted(const Facts& facts, BlockOutcome& outcome, std::vector<Finding>& findings) {
  std::set<TensorId> mended;
  for (const auto& [says, finding] : outcome.permuted) {
    for (const Diagnosis& diagnosis : finding.diagnoses) mended.insert(tensor_of(diagnosis));
  }
  const std::vector<std::string> left = states_not_repaired_with(facts, mended, outcome.right);
  for (auto& [says, finding] : outcome.permuted) {
    const bool is_like = finding.evidence.back().first == kMargin;
    if (is_like && is_reference_of_same_step(outcome)) {
      finding.diagnoses.clear();
      finding.cause += kCorrelationIsNoProof;
      findings.push_back(std::move(finding));
      continue;
    }
    std::string text =
        is_like ? "Put each block where the reference has the most similar one: nothing is lost."
                : "Put the blocks in the order of the reference: nothing is lost. "
                  "Optimizer states are moved only where the reference has them "
                  "too.";
    if (is_like && !left.empty()) {
      text += " " + short_list_text(left) + (left.size() == 1 ? " is" : " are") +
              " left as saved: the order of the optimizer's states is not known.";
      finding.evidence.emplace_back("states_left", capped(left));
    }
    finding.remedy = Remedy{"permute-blocks", true, std::move(text)};
    findings.push_back(std::move(finding));
  }
}

// Compares every unexplained tensor once, divided among the ranks of a team.
Result<BlockOutcome> compare_all(const Facts& facts, const std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  auto explained = subjects_with_diagnosis(findings);
  BlockOutcome outcome;
  outcome.right = facts.equal_to_reference;
  std::vector<TensorId> asked;
  std::vector<ComparisonCost> costs;
  for (TensorId tensor : each_tensor(facts)) {
    const auto& other = facts.counterparts[index_of(tensor)];
    if (!other || is_incomparable(facts, tensor, *other) || explained.contains(c.fqn(tensor)))
      continue;
    if (facts.equal_to_reference.contains(tensor)) {
      finalize(facts, tensor, {Answer::kEqual}, outcome);
      continue;
    }
    asked.push_back(tensor);
    const std::uint64_t slices = bytes_to_compare_blocks(c.shape(tensor));
    costs.push_back({2 * bytes_of_elements(c, tensor),
                     2 * memory_to_read_in_pieces(c, tensor) + slices +
                         2 * decode_budget_per_side(facts) + slice_match_bytes(c.shape(tensor))});
  }
  auto compare = [&](std::size_t i) -> Result<std::string> {
    return words_of(
        compare_with_reference(facts, asked[i], *facts.counterparts[index_of(asked[i])]));
  };
  SHW_TRY(auto told, map_comparisons(facts, "look for other orders", costs, compare));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    SHW_TRY(Compared compared, compared_of(asked[i], told[i]));
    finalize(facts, asked[i], std::move(compared), outcome);
  }
  return outcome;
}

Status find_permuted_blocks(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr) return {};
  SHW_TRY(BlockOutcome outcome, compare_all(facts, findings));
  resolve_tiles(facts, outcome, findings);
  report_permuted(facts, outcome, findings);
  return report_differing(facts, outcome.differing, findings);
}

}  // namespace

const Rule kBlocksPermuted = {
    .id = "blocks-permuted",
    .depth = Depth::kHeaders,
    .title = "All rows are there, but in the wrong order",
    .teaches =
        "Fused weights hold several matrices in one: gate and up, query, key and value. Trainers, "
        "exporters and kernels stack them differently, and all orders have the same shape, so a "
        "wrong one loads without an error and the model outputs garbage. With --against another "
        "checkpoint the blocks are compared byte by byte; if the same blocks are in a different "
        "order, that order is reported, with its cause if known, and the repair moves the blocks "
        "and loses nothing. If some blocks are equal, the order stays undecided. Compared with an "
        "earlier step no bytes are equal: there each row is matched by correlation, and reported "
        "only if it matches exactly one place.",
    .lesson = {.drawing = R"(
  query, key, value of 2 groups in one weight

  reference    │ q0 │ q1 │ q2 │ q3 │ k0 │ k1 │ v0 │ v1 │
  saved        │ q0 │ q1 │ k0 │ v0 │ q2 │ q3 │ k1 │ v1 │
  the same eight blocks, in the order of the trainer
)",
               .remedy =
                   "`shardwright repair --against REFERENCE` moves the blocks into the reference's "
                   "order: lossless. If two blocks are equal, the order stays undecided.",
               .link = "https://github.com/NVIDIA/Megatron-LM/issues/2769"},
    .run_shared = find_permuted_blocks,
};

}  // namespace shw
