// Concatenated copies of a tensor: a merge of ranks' files treated replicated tensors as parts, so
// that [24] became [192].
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/layout/retained_chunks.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/facts/reference/repeated_parts.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/values/value_reader.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Rows in reference or spec if the tensor is longer only along its first dimension.
std::int64_t expected_rows(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  const auto other =
      facts.reference == nullptr ? std::nullopt : comparable_counterpart(facts, tensor);
  const SpecEntry* entry =
      other || facts.spec == nullptr ? nullptr : facts.spec->find(c.fqn(tensor));
  if (!other && entry == nullptr) return 0;
  const ExtentsView expected = other ? facts.reference->shape(*other) : ExtentsView(entry->shape);
  const ExtentsView shape = c.shape(tensor);
  if (shape.empty() || shape.size() != expected.size() || shape[0] <= expected[0] ||
      !same(shape.subspan(1), expected.subspan(1)))
    return 0;
  return expected[0];
}

// Repeated by design: computed tables, and key/value heads duplicated by a mesh. Experts are
// reported by duplicate-content.
bool repeats_by_design(std::string_view fqn) {
  constexpr std::array<std::string_view, 16> kWords = {
      "rotary", "inv_freq", "freqs", "cos",  "sin",    "position", "A_log",  "mask",
      "k_proj", "v_proj",   "qkv",   ".key", ".value", "experts.", "window", "relative"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return fqn.find(word) != std::string_view::npos;
  });
}

struct Repeated {
  TensorId tensor{};
  RepeatedParts parts;
  bool is_expected = false;  // a part has the expected size
};

bool may_repeat(const Facts& facts, TensorId tensor) {
  const Checkpoint& c = facts.checkpoint;
  return c.directory() != nullptr && !c.fqn(tensor).starts_with("optim") &&
         facts.tilings[index_of(tensor)].tiling == Tiling::kExact && size_of(c.dtype(tensor)) != 0;
}

Result<std::vector<Repeated>> repeated_tensors(const Facts& facts,
                                               const std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto mended = subjects_with_diagnosis(findings);
  std::vector<RepeatQuery> asked;
  std::vector<bool> expected;
  for (TensorId tensor : each_tensor(facts)) {
    if (!may_repeat(facts, tensor) || mended.contains(c.fqn(tensor))) continue;
    const std::int64_t rows = expected_rows(facts, tensor);
    // Without an expected shape only floats with ordinary names are examined. The rows of a moment
    // are equal where those of the gradient were.
    const bool is_asked =
        rows != 0 ||
        (facts.depth == Depth::kData && facts.spec == nullptr && has_values(c.dtype(tensor)) &&
         !repeats_by_design(c.fqn(tensor)) && !parse_state_fqn(c.fqn(tensor)));
    if (!is_asked) continue;
    asked.push_back({tensor, rows});
    expected.push_back(rows != 0);
  }
  SHW_TRY(const auto found, find_repeated_parts(facts, asked));
  std::vector<Repeated> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].parts > 1 && (expected[i] || found[i].tells))
      out.push_back({asked[i].tensor, found[i], expected[i]});
  }
  return out;
}

// Keeps only the first copy.
PartlyLost first_part(const Checkpoint& c, const Repeated& one) {
  Extents expected = copy_of(c.shape(one.tensor));
  expected[0] = one.parts.rows;
  return crop_tensor_to_shape(c, one.tensor, expected);
}

void report_repeated(const Facts& facts, const std::vector<Repeated>& repeated, bool is_expected,
                     std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (repeated.empty()) return;
  Finding finding{.rule = "axis-repeated",
                  .severity = is_expected ? Severity::kError : Severity::kWarning};
  std::vector<std::string> how;
  for (const Repeated& one : repeated) {
    finding.subjects.emplace_back(c.fqn(one.tensor));
    Extents part = copy_of(c.shape(one.tensor));
    part[0] = one.parts.rows;
    how.push_back(fmt::format("{} {} is {} equal copies of {}", c.fqn(one.tensor),
                              to_text(c.shape(one.tensor)), one.parts.parts, to_text(part)));
    if (is_expected) finding.diagnoses.emplace_back(first_part(c, one));
  }
  const std::size_t more = repeated.size() - 1;
  finding.cause = fmt::format(
      "{}, byte for byte{}. A merge of rank files treated copies of a replicated tensor as shards "
      "and concatenated them.",
      how.front(), more == 0 ? "" : ", and so " + plural(more, "more tensor"));
  finding.cause +=
      is_expected ? " A load fails with a size mismatch."
                  : " Compare with --against a good copy to see whether this is the true size.";
  finding.evidence = {{"tensors", capped(how)},
                      {"parts", repeated.front().parts.parts},
                      {"count", count_of(how.size())}};
  if (is_expected)
    finding.remedy = Remedy{"trim", true,
                            "Keep the first copy of each and drop the others, which are equal to "
                            "it byte for byte: nothing is lost."};
  findings.push_back(std::move(finding));
}

Status find_repeated_axes(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.headers.empty()) return {};
  SHW_TRY(const auto repeated, repeated_tensors(facts, findings));
  std::vector<Repeated> expected, seen;
  std::map<std::int64_t, std::size_t> by_parts;
  for (const Repeated& one : repeated) {
    if (one.is_expected)
      expected.push_back(one);
    else
      ++by_parts[one.parts.parts];
  }
  // A single tensor may be designed so.
  for (const Repeated& one : repeated) {
    if (!one.is_expected && by_parts[one.parts.parts] > 1) seen.push_back(one);
  }
  report_repeated(facts, expected, true, findings);
  report_repeated(facts, seen, false, findings);
  return {};
}

}  // namespace

const Rule kAxisRepeated = {
    .id = "axis-repeated",
    .depth = Depth::kHeaders,
    .title = "A tensor is several copies of itself, concatenated",
    .teaches =
        "Replicated tensors (buffers, norms, biases) are full copies on each rank, and a merge of "
        "rank files must take one. If it concatenates them, [24] becomes [192] with 8 ranks, and a "
        "scalar stops the merge with 'zero-dimensional tensor cannot be concatenated'. Copies that "
        "are equal byte for byte prove it: with --against, or --spec, the repair keeps the first "
        "and loses nothing. Without them, two tensors with the same number of copies are a "
        "warning; constants, computed tables and key-value heads are ignored.",
    .lesson = {.drawing = R"(
  on each of 3 ranks   a b c d
  merged as parts      a b c d a b c d a b c d      [4] became [12]
)",
               .remedy =
                   "`shardwright repair --against REFERENCE` keeps the first copy: lossless. Fix "
                   "the merge script too: it must take replicated tensors from one rank only.",
               .link = "https://github.com/verl-project/verl/issues/7612"},
    .words = {.text = "will not load", .as_warning = "repeats itself"},
    .outcome = RunOutcome::kLoadFails,
    .run_shared = find_repeated_axes,
};

}  // namespace shw
