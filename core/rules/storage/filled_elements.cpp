#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/storage/filled.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// One value per subject, in order, for programs; people read the message.
void add_evidence(const FilledReport& filled, Finding& finding) {
  Extents lost, total;
  std::vector<std::string> fills, boxes_in;
  std::vector<Box> boxes;
  for (const FilledTensor& tensor : filled.tensors) {
    lost.push_back(tensor.lost);
    total.push_back(tensor.total());
    fills.push_back(replacement_text(tensor));
    for (const Box& box : tensor.boxes) {
      if (boxes.size() == kMaxEvidence) break;
      boxes.push_back(box);
      boxes_in.push_back(tensor.fqn);
    }
  }
  finding.evidence = {{"lost_elements", std::move(lost)},     {"total_elements", std::move(total)},
                      {"filled_with", std::move(fills)},      {"lost_boxes", std::move(boxes)},
                      {"lost_boxes_in", std::move(boxes_in)}, {"said_by", filled.sources}};
  if (!filled.disagreements.empty())
    finding.evidence.emplace_back("disagreements", filled.disagreements);
}

std::string sentence(const FilledReport& filled, std::size_t objects) {
  std::int64_t lost = 0, total = 0;
  bool one_fill = true;
  for (const FilledTensor& tensor : filled.tensors) {
    lost += tensor.lost;
    total += tensor.total();
    one_fill = one_fill && replacement_text(tensor) == replacement_text(filled.tensors.front());
  }
  std::string text;
  if (!filled.tensors.empty()) {
    text = human_count(static_cast<std::uint64_t>(lost)) + " of " +
           human_count(static_cast<std::uint64_t>(total)) +
           " elements are not trained values: their saved bytes were lost or dropped, and a repair "
           "filled them with " +
           (one_fill ? replacement_text(filled.tensors.front())
                     : "zeros, casts of other tensors or another checkpoint's elements") +
           ".";
  }
  if (objects != 0) {
    text += (text.empty() ? "" : " ") + plural(objects, "entry") +
            (objects == 1 ? " that is not a tensor keeps" : " that are not tensors keep") +
            " a value taken from a different entry by a repair.";
  }
  if (!filled.disagreements.empty())
    text += " The records disagree (" + filled.disagreements.front() +
            "); the larger loss is reported.";
  return text;
}

Finding file_info_finding(const std::string& file, std::string_view rule, std::string cause) {
  Finding finding{.rule = std::string(rule), .severity = Severity::kInfo, .subjects = {file}};
  finding.cause = std::move(cause);
  return finding;
}

void find_filled_elements(const Facts& facts, std::vector<Finding>& findings) {
  const FilledReport& filled = facts.filled;
  Finding finding{.rule = "filled-elements", .severity = Severity::kWarning};
  for (const FilledTensor& tensor : filled.tensors) finding.subjects.push_back(tensor.fqn);
  for (const FilledEntry& entry : filled.entries) finding.subjects.push_back(entry.fqn);
  if (!finding.subjects.empty()) {
    finding.cause = sentence(filled, filled.entries.size());
    add_evidence(filled, finding);
    findings.push_back(std::move(finding));
  }
  for (const std::string& file : filled.foreign) {
    findings.push_back(
        file_info_finding(file, kFilledElements.id,
                          file + " describes a different checkpoint: most tensors that it names "
                                 "are not here with that shape. It was ignored."));
  }
  for (const std::string& file : filled.unreadable) {
    findings.push_back(file_info_finding(file, kNotLookedAt.id,
                                         "What " + file +
                                             " records about elements filled by a repair cannot be "
                                             "read, so it is not known whether there are any."));
  }
}

}  // namespace

const Rule kFilledElements = {
    .id = "filled-elements",
    .depth = Depth::kMetadata,
    .title = "A repair filled what was lost",
    .teaches =
        "Some elements were never saved, or their bytes are missing. A repair filled them so that "
        "the checkpoint loads: with zeros, a cast of another tensor, or the same elements of "
        "another checkpoint. They are not the trained values of this checkpoint, and no later "
        "repair can recover them. The record is in .metadata (or in the safetensors file), in "
        "lost.json and in certificate.json; one of them is enough, and if they differ the larger "
        "loss counts.",
    .lesson = {.drawing = R"(
  optimizer.state.w.exp_avg [16, 4]
  rows of rank 0     never saved: zeros now
  rows of rank 1     saved, kept
)",
               .remedy = "Mask or reset exactly those elements; lost.json lists every box. Or take "
                         "them from another save of the run: repair the damaged checkpoint again "
                         "with --fill from:CHECKPOINT."},
    .words = {.text = "loads, but not all of it was trained"},
    .outcome = RunOutcome::kIsFilled,
    .run = find_filled_elements,
};

}  // namespace shw
