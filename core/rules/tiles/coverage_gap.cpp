#include <limits>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

struct Gaps {
  Finding finding;
  std::vector<Box> boxes;           // the first kMaxEvidence
  std::vector<std::string> inside;  // the tensor of each box
  std::uint64_t count = 0;
  std::int64_t missing = 0, all = 0;
  bool complete = true;
};

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

void add_gap(const Checkpoint& checkpoint, TensorId tensor, const TilingDefects& defects,
             Gaps& out) {
  out.finding.subjects.emplace_back(checkpoint.fqn(tensor));
  out.count += defects.gaps.size();
  out.missing = saturating_add(out.missing, defects.missing);
  out.all = saturating_add(
      out.all, volume(checkpoint.shape(tensor)).value_or(std::numeric_limits<std::int64_t>::max()));
  out.complete = out.complete && defects.complete;
  for (const Box& gap : defects.gaps) {
    if (out.boxes.size() >= kMaxEvidence) break;
    out.boxes.push_back(gap);
    out.inside.push_back(out.finding.subjects.back());
  }
}

void finish_gaps(Gaps& gaps, std::string how, std::vector<Finding>& findings) {
  if (gaps.finding.subjects.empty()) return;
  Finding& finding = gaps.finding;
  finding.rule = "coverage-gap";
  finding.cause = std::move(how);
  double share =
      gaps.all > 0 ? static_cast<double>(gaps.missing) / static_cast<double>(gaps.all) : 0.0;
  finding.evidence = {{"missing_boxes", gaps.boxes},
                      {"missing_in", gaps.inside},
                      {"box_count", static_cast<std::int64_t>(gaps.count)},
                      {"missing_elements", gaps.missing},
                      {"missing_share", share},
                      {"complete", gaps.complete}};
  write_unreadable(gaps.missing, count_of(finding.subjects.size()), finding);
  findings.push_back(std::move(finding));
}

// Reports tensors with gaps, and separately tensors without any tile.
void find_coverage_gaps(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Gaps holes, bare;
  for (TensorId tensor : each_tensor(facts)) {
    const TilingDefects& defects = facts.tilings[index_of(tensor)].defects;
    if (defects.gaps.empty()) continue;
    add_gap(checkpoint, tensor, defects, checkpoint.chunks(tensor).empty() ? bare : holes);
  }
  std::string where = holes.boxes.empty() ? "" : to_text(holes.boxes.front());
  std::string first = holes.boxes.empty() ? "" : holes.inside.front();
  finish_gaps(holes,
              plural(static_cast<std::uint64_t>(holes.missing), "element") + " of " +
                  plural(holes.finding.subjects.size(), "tensor") + " are in no chunk (" + first +
                  " " + where + (holes.count > 1 ? ", ..." : "") +
                  "): torch loads the rest and leaves these elements unchanged, without an error.",
              findings);
  finish_gaps(bare,
              short_list_text(bare.finding.subjects) +
                  (bare.finding.subjects.size() == 1 ? " is" : " are") +
                  " recorded without any chunk: none of its data was saved.",
              findings);
}

}  // namespace

const Rule kCoverageGap = {
    .id = "coverage-gap",
    .depth = Depth::kMetadata,
    .title = "Part of a tensor is in no chunk",
    .teaches =
        "The chunks of a tensor must cover its global shape. If they do not, torch reports no "
        "error: it copies the chunks that are there and leaves the old values in the gap, usually "
        "random initial weights. The missing boxes are listed. Usual causes: a rank's metadata was "
        "lost, only some ranks saved, or the global shape comes from a different layout. If a rank "
        "that wrote neighbouring chunks has a file that the metadata does not reference, the bytes "
        "may still be there.",
    .lesson = {.drawing = R"(
  tensor [8]   │ 0   1   2   3   4   5   6   7 │
  saved        │ 0   1   2 │░░░░░░░│ 5   6   7 │
                           └ hole: keeps what the model had before
)",
               .remedy = "Look for the file of the rank that should have written the gap, or use "
                         "an earlier step. Do not resume training from this one: the gap keeps the "
                         "values from before the load.",
               .link = "https://github.com/pytorch/pytorch/issues/168134"},
    .words = {.text = "loads without an error, but not all of it"},
    .coverage = {.text = "coverage has gaps", .place = 1, .applies_at_any_severity = true},
    .outcome = RunOutcome::kLosesElements,
    .symptom_in = SymptomIn::kTiles,
    .repaired_by = RepairedBy::kTiles,
    .run = find_coverage_gaps,
};

}  // namespace shw
