// A weight is saved as its transpose (Conv1D instead of Linear, fused experts). Evidence, strongest
// first:
//
//   bytes    equal to the reference's bytes transposed, or similar by cosine on trained weights
//   strides  the last two dims of the shape are swapped, and the items hold column-major views:
//            x.t() of a tensor with the expected shape was saved. A matrix with one row or one
//            column is the same either way.
//   shape    only the shape differs. Undecided, since the bytes may be transposed, read through a
//            view, or belong to another tensor whose name was swapped.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/grown_axis.h"
#include "core/facts/reference/comparison_words.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/transposed_constraint.h"
#include "core/rules/explained.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Smaller tensors may be transposes of each other by chance.
constexpr std::int64_t kMinTransposed = 8;

struct TransposedTensor {
  TensorId tensor{};
  OrientationFound found;  // matrices is 0 if the strides are the only evidence
};

struct TransposedOutcome {
  std::vector<TransposedTensor> by_bytes, by_strides;
  std::vector<TensorId> by_shape, relabelled;
  std::vector<std::string> mixed;
  std::set<TensorId> right;  // tensors that equal the reference's
};

Extents exchanged(ExtentsView shape) {
  Extents out = copy_of(shape);
  std::swap(out[out.size() - 1], out[out.size() - 2]);
  return out;
}

// True if every item holds a column-major matrix, as a transposed view does.
bool is_column_major(const ItemHeader& header) {
  std::size_t n = header.sizes.size();
  if (n < 2 || header.strides.size() != n) return false;
  if (header.strides[n - 2] != 1 || header.strides[n - 1] != header.sizes[n - 2]) return false;
  std::int64_t below = header.sizes[n - 1] * header.sizes[n - 2];
  for (std::size_t d = n - 2; d-- > 0;) {
    if (header.sizes[d] != 1 && header.strides[d] != below) return false;
    below *= header.sizes[d];
  }
  return true;
}

bool strides_are_transposed(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  ExtentsView shape = c.shape(tensor);
  if (shape[shape.size() - 1] == 1 || shape[shape.size() - 2] == 1) return true;
  bool seen = false;
  for (ChunkId chunk : c.chunks(tensor)) {
    ExtentsView sizes = c.sizes(chunk);
    std::size_t n = sizes.size();
    if (volume(sizes) == 0 || (n >= 2 && (sizes[n - 1] == 1 || sizes[n - 2] == 1))) continue;
    if (index_of(chunk) >= facts.headers.size()) return false;
    const auto& header = facts.headers[index_of(chunk)];
    if (!header || !same(header->sizes, sizes) || !is_column_major(*header)) return false;
    seen = true;
  }
  return seen;
}

// Judges by the spec's shape alone, unless a placement on the wrong axis explains it as well.
void decide_by_shape(const Facts& facts, TensorId tensor, TransposedOutcome& outcome) {
  const Checkpoint& c = facts.checkpoint;
  const SpecEntry* entry = facts.spec == nullptr ? nullptr : facts.spec->find(c.fqn(tensor));
  ExtentsView shape = c.shape(tensor);
  if (entry == nullptr || !differ_by_last_dims_swap(shape, entry->shape)) return;
  if (entry->dtype && *entry->dtype != c.dtype(tensor)) return;
  if (facts.tilings[index_of(tensor)].tiling != Tiling::kExact) return;
  auto relation = relate_axes(shape, entry->shape);
  if (relation && tiles_allow_relabel(c, tensor, entry->shape, *relation)) return;
  if (strides_are_transposed(facts, tensor))
    outcome.by_strides.push_back({tensor, {}});
  else
    outcome.by_shape.push_back(tensor);
}

// Evidence that decides whether a tensor is transposed.
enum class TransposeEvidence : std::uint8_t {
  kShape,  // the shape in the spec and the strides of the items
  kBytes,  // the reference's bytes, before the shape
  kNone,   // not checked: it equals the reference, or the reference itself is wrong
};

struct OrientationQuery {
  TensorId tensor{};
  TransposeEvidence ground = TransposeEvidence::kShape;
  bool is_square = false;  // here and in the reference: shapes do not tell
};

OrientationQuery ask(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  OrientationQuery out{tensor};
  auto other = comparable_counterpart(facts, tensor);
  if (!other || facts.depth < Depth::kHeaders) return out;
  ExtentsView saved = c.shape(tensor), expected = facts.reference->shape(*other);
  out.is_square = same(saved, expected) && is_square(saved);
  if (!out.is_square && !differ_by_last_dims_swap(saved, expected)) return out;
  // If the shape is the spec's, the reference has the other orientation.
  const SpecEntry* entry = facts.spec == nullptr ? nullptr : facts.spec->find(c.fqn(tensor));
  const bool is_asked_for = !out.is_square && entry != nullptr && same(entry->shape, saved);
  if (is_asked_for || (out.is_square && facts.equal_to_reference.contains(tensor)))
    out.ground = TransposeEvidence::kNone;
  else
    out.ground = TransposeEvidence::kBytes;
  return out;
}

std::optional<OrientationFound> orientation_of(const Facts& facts, TensorId tensor) {
  auto read = [&](const Checkpoint& side, TensorId one) {
    return pieces_of(side, one, Dtype::kUnknown, facts.progress);
  };
  auto other = comparable_counterpart(facts, tensor);
  auto image = other ? read(facts.checkpoint, tensor) : std::nullopt;
  auto truth = image ? read(*facts.reference, *other) : std::nullopt;
  return truth ? find_orientation(*image, *truth) : std::nullopt;
}

// Orientations of all tensors of Ground::kBytes, computed on all cores; empty for those that cannot
// be read.
Result<std::vector<std::optional<OrientationFound>>> orientations_of(
    const Facts& facts, const std::vector<OrientationQuery>& asked) {
  const Checkpoint& c = facts.checkpoint;
  std::vector<ComparisonCost> costs;
  std::vector<std::size_t> by_bytes;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].ground != TransposeEvidence::kBytes) continue;
    by_bytes.push_back(i);
    const TensorId tensor = asked[i].tensor;
    costs.push_back({2 * bytes_of_elements(c, tensor),
                     2 * memory_to_read_in_pieces(c, tensor) +
                         orientation_check_bytes(c.shape(tensor), c.dtype(tensor))});
  }
  auto find = [&](std::size_t i) -> Result<std::string> {
    auto found = orientation_of(facts, asked[by_bytes[i]].tensor);
    if (!found) return std::string();
    Encoder payload;
    add(payload, *found);
    return packed_text(payload.take());
  };
  SHW_TRY(auto told, map_comparisons(facts, "look for transposes", costs, find));
  std::vector<std::optional<OrientationFound>> out(asked.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (told[i].empty()) continue;
    Decoder payload(std::as_bytes(std::span(told[i])));
    SHW_TRY(out[by_bytes[i]], decode_orientation(payload));
  }
  return out;
}

// True if the bytes of both sides decide, either way.
bool decide_by_bytes(const Checkpoint& c, const OrientationQuery& asked,
                     const std::optional<OrientationFound>& found, TransposedOutcome& outcome) {
  if (!found) return false;
  const TensorId tensor = asked.tensor;
  switch (found->orientation) {
    case Orientation::kEqual:
      outcome.right.insert(tensor);
      return true;
    case Orientation::kSwappedDims:
      outcome.by_bytes.push_back({tensor, *found});
      return true;
    case Orientation::kRelabelled:
      outcome.relabelled.push_back(tensor);
      return true;
    case Orientation::kMixed:
      outcome.mixed.push_back(
          fmt::format("{} ({} of {} matrices)", c.fqn(tensor), found->transposed, found->matrices));
      return asked.is_square;
    case Orientation::kUnrelated:
      break;
  }
  return asked.is_square;
}

Finding transposed_finding_for(const Checkpoint& c, const std::vector<TransposedTensor>& proven) {
  Finding finding{.rule = "transposed"};
  finding.link = "transformers #47031";
  for (const TransposedTensor& one : proven) {
    ExtentsView shape = c.shape(one.tensor);
    finding.subjects.emplace_back(c.fqn(one.tensor));
    finding.diagnoses.emplace_back(
        Transposed{one.tensor, shape.size() - 2, shape.size() - 1, exchanged(shape)});
  }
  ExtentsView shape = c.shape(proven.front().tensor);
  finding.evidence = {{"count", count_of(proven.size())},
                      {"saved", copy_of(shape)},
                      {"expected", exchanged(shape)}};
  return finding;
}

void add_remedy(const Facts& facts, const std::vector<TransposedTensor>& proven,
                const std::set<TensorId>& right, Finding& finding) {
  std::string text =
      "Swap the last two dimensions: every element is kept, nothing is lost. The bytes move, so it "
      "is written into a new directory.";
  std::set<TensorId> mended;
  for (const TransposedTensor& one : proven) mended.insert(one.tensor);
  std::vector<std::string> left = states_not_repaired_with(facts, mended, right);
  if (!left.empty()) {
    text += " " + short_list_text(left) + (left.size() == 1 ? " is" : " are") +
            " left as saved: it is not known whether the optimizer's states are transposed too; "
            "use a reference that has them.";
    finding.evidence.emplace_back("states_left", capped(left));
  }
  finding.remedy = Remedy{"transpose", true, std::move(text)};
}

void report_by_bytes(const Facts& facts, const std::vector<TransposedTensor>& proven,
                     const std::set<TensorId>& right, std::vector<Finding>& findings) {
  if (proven.empty()) return;
  const Checkpoint& c = facts.checkpoint;
  Finding finding = transposed_finding_for(c, proven);
  std::vector<std::string> by_constraint;
  double margin = 2;
  bool sampled = false;
  std::int64_t compared = 0;
  for (const TransposedTensor& one : proven) {
    if (one.found.exact) continue;
    by_constraint.emplace_back(c.fqn(one.tensor));
    margin = std::min(margin, one.found.margin);
    sampled = sampled || one.found.sampled;
    compared += one.found.compared;
  }
  const TransposedTensor& first = proven.front();
  finding.cause = finding.subjects.front() + " is the transpose of the reference, ";
  finding.cause += first.found.exact ? "number by number" : "as its values show";
  finding.cause += is_square(c.shape(first.tensor))
                       ? ": its last two dimensions are equal, so it loads without an error."
                       : ".";
  if (!by_constraint.empty()) {
    std::string digits = std::to_string(margin);
    finding.cause += fmt::format(
        " {} {} values that differ from the reference and {} closer to its transpose than to "
        "itself by a cosine of at least {} (0.3 decides)",
        plural(by_constraint.size(), "tensor"), by_constraint.size() == 1 ? "holds" : "hold",
        by_constraint.size() == 1 ? "is" : "are", digits.substr(0, digits.find('.') + 3));
    finding.cause += sampled ? ", by a sample of its rows and columns." : ".";
    finding.evidence.emplace_back("by_cosine", capped(by_constraint));
    finding.evidence.emplace_back("margin", margin);
    finding.evidence.emplace_back("elements_compared", compared);
    finding.evidence.emplace_back("sampled", sampled);
  }
  add_remedy(facts, proven, right, finding);
  findings.push_back(std::move(finding));
}

void report_by_strides(const Facts& facts, const std::vector<TransposedTensor>& proven,
                       const std::set<TensorId>& right, std::vector<Finding>& findings) {
  if (proven.empty()) return;
  Finding finding = transposed_finding_for(facts.checkpoint, proven);
  finding.cause = finding.subjects.front() + " is saved as " +
                  to_text(facts.checkpoint.shape(proven.front().tensor)) + " where " +
                  to_text(exchanged(facts.checkpoint.shape(proven.front().tensor))) +
                  " is expected, and its items are transposed views of matrices of the expected "
                  "shape (or have one row or column, where both are equal): the transpose was "
                  "saved, and torch refuses the load.";
  finding.evidence.emplace_back("ground", std::string("strides"));
  add_remedy(facts, proven, right, finding);
  findings.push_back(std::move(finding));
}

void report_undecided(const Checkpoint& c, const std::vector<TensorId>& tensors,
                      const std::string& why, const char* ground, std::vector<Finding>& findings) {
  if (tensors.empty()) return;
  Finding finding{.rule = "transposed"};
  finding.link = "transformers #47031";
  for (TensorId tensor : tensors) finding.subjects.emplace_back(c.fqn(tensor));
  ExtentsView shape = c.shape(tensors.front());
  finding.cause = finding.subjects.front() + " is saved as " + to_text(shape) + " where " +
                  to_text(exchanged(shape)) + " is expected, and torch refuses the load. " + why;
  finding.evidence = {{"count", count_of(tensors.size())},
                      {"saved", copy_of(shape)},
                      {"expected", exchanged(shape)},
                      {"ground", std::string(ground)},
                      {"decided", false}};
  findings.push_back(std::move(finding));
}

void report_partly_transposed(const TransposedOutcome& outcome, std::vector<Finding>& findings) {
  if (outcome.mixed.empty()) return;
  Finding finding{.rule = "transposed"};
  finding.link = "transformers #47031";
  for (const std::string& one : outcome.mixed)
    finding.subjects.push_back(one.substr(0, one.find(" (")));
  finding.cause = short_list_text(outcome.mixed) + (outcome.mixed.size() == 1 ? " is" : " are") +
                  " partly transposed: the others are not closer to the transpose of the reference "
                  "than to the reference. Undecided; use a reference of the same step to decide.";
  finding.evidence = {{"decided", false}, {"matrices", capped(outcome.mixed)}};
  findings.push_back(std::move(finding));
}

Status find_transposed(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.reference == nullptr && facts.spec == nullptr) return {};
  const Checkpoint& c = facts.checkpoint;
  auto explained = subjects_with_diagnosis(findings);
  explained.merge(explained_by(findings, kPlacementAxisMoved.id));
  std::vector<OrientationQuery> asked;
  for (TensorId tensor : each_tensor(facts)) {
    if (explained.contains(c.fqn(tensor)) || c.shape(tensor).size() < 2) continue;
    if (volume(c.shape(tensor)).value_or(0) >= kMinTransposed) asked.push_back(ask(facts, tensor));
  }
  SHW_TRY(const auto orientations, orientations_of(facts, asked));
  TransposedOutcome outcome;
  outcome.right = facts.equal_to_reference;
  for (std::size_t i = 0; i < asked.size() && !is_cancelled(facts.progress); ++i) {
    const OrientationQuery& one = asked[i];
    bool is_settled = one.ground == TransposeEvidence::kNone;
    if (one.ground == TransposeEvidence::kBytes)
      is_settled = decide_by_bytes(c, one, orientations[i], outcome);
    if (!is_settled) decide_by_shape(facts, one.tensor, outcome);
  }
  report_by_bytes(facts, outcome.by_bytes, outcome.right, findings);
  report_by_strides(facts, outcome.by_strides, outcome.right, findings);
  report_undecided(c, outcome.by_shape,
                   "Undecided by the shape alone: the bytes may be transposed, or the same bytes "
                   "seen through a view, or two tensors may have swapped names. Compare with "
                   "--against a checkpoint where the tensor is right.",
                   "shape", findings);
  report_undecided(
      c, outcome.relabelled,
      "Its bytes are in the reference's order: a view was saved, not a transpose, and transposing "
      "would corrupt it. Use .view() with the expected shape before saving.",
      "view", findings);
  report_partly_transposed(outcome, findings);
  return {};
}

}  // namespace

const Rule kTransposed = {
    .id = "transposed",
    .depth = Depth::kMetadata,
    .title = "A matrix is saved transposed",
    .teaches =
        "Some libraries store a linear layer as input x output, others as output x input; fused "
        "experts come both ways too. If both dimensions are equal the shape does not show which, "
        "and a converter that guesses by shape can be wrong. With --against, the values are "
        "compared; if training continued between the two saves, the cosine of each matrix with the "
        "reference and with the reference's transpose is used. If only the expected shape is "
        "known, a transpose is "
        "certain only for an item that was saved as a transposed view: .view() gives the same "
        "shape without moving bytes. The repair transposes every chunk and loses nothing.",
    .lesson = {.drawing = R"(
  reference [3, 3]      saved [3, 3]
  ┌─────────────┐       ┌─────────────┐
  │  0   1   2  │       │  0   3   6  │
  │  3   4   5  │       │  1   4   7  │
  │  6   7   8  │       │  2   5   8  │
  └─────────────┘       └─────────────┘
  equal shapes: no loader can tell
)",
               .remedy = "`shardwright repair --against REFERENCE` transposes every chunk: "
                         "lossless. Fix the converter that wrote it too.",
               .link = "https://github.com/huggingface/transformers/issues/47031"},
    .outcome = RunOutcome::kLoadFailsByShape,
    .run_shared = find_transposed,
};

}  // namespace shw
