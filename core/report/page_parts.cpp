#include "core/report/page_parts.h"
#include "core/repair/plan/planned_tiling.h"
#include "core/spec/expected_tiling.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/report/ci_forms.h"
#include "core/report/listing.h"
#include "core/rules/consequence.h"
#include "core/rules/damage.h"
#include "core/rules/unjudged.h"
#include "core/rules/unreadable.h"

namespace shw {

std::string_view word_of(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInfo:
      break;
  }
  return "note";
}

std::string verdict_sentence(const ReportInput& input) {
  const AffectedCounts affected =
      count_affected_by_findings(input.checkpoint, input.check.findings);
  if (affected.causes == 0) {
    std::vector<std::string> hints = rules_with_hints(input.check.unjudged);
    std::string depth = " (depth " + std::string(name(input.check.depth)) + ")";
    return input.check.verdict == Verdict::kUndecided ? "Could not decide: not all could be read"
           : hints.empty()                            ? "No finding" + depth
                           : "No finding, but a hint: " + short_list_text(hints) + depth;
  }
  const std::string gone = unreadable_text(unreadable_in(input.checkpoint, input.check.findings));
  return title_of(input.check.findings) + ": " + affected_counts_text(affected) +
         (gone.empty() ? "" : ". " + gone);
}

std::string baseline_mark_text(const ReportInput& input, const Finding& finding) {
  const Baseline* baseline = input.asked != nullptr ? input.asked->baseline : nullptr;
  return baseline != nullptr && is_known(*baseline, finding) ? ", known before" : "";
}

std::string requested_text(const ReportInput& input) {
  return input.asked != nullptr ? context_to_text(input.check, *input.asked, TextStyle{}) : "";
}

namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kMaxSubjects); ++i)
    text += (i > 0 ? ", " : "") + clipped(parts[i]);
  return text + and_more(parts.size(), kMaxSubjects);
}

std::string number_text(double value) {
  char buffer[32];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return code == std::errc{} ? std::string(buffer, end) : "?";
}

}  // namespace

std::string subjects_counted(const Checkpoint& checkpoint, const Finding& finding) {
  if (finding.subjects.empty()) return "";
  return plural(finding.subjects.size(),
                first_tensor_subject(checkpoint, finding) ? "tensor" : "file");
}

std::string label_of(std::string_view key) {
  // A dimension's number is not a count.
  if (key == "grown") return "dimension that grew";
  if (key == "shrunk") return "dimension that shrank";
  std::string label(key);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string clipped(std::string_view text) {
  if (text.size() <= kMaxLetters) return std::string(text);
  std::size_t end = kMaxLetters;
  while (end > 0 && (static_cast<unsigned char>(text[end]) >> 6) == 2) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string and_more(std::size_t count, std::size_t shown) {
  return count > shown ? " and " + human_count(count - shown) + " more" : "";
}

std::string fill_text(const PlannedTensor& tensor) {
  if (tensor.fill == Fill::kZero) return "zeros";
  if (tensor.fill == Fill::kCast) return "the cast of " + tensor.fill_from;
  bool named = tensor.fill_source != nullptr && tensor.fill_source->directory() != nullptr;
  return tensor.fill_from + " of " +
         (named ? tensor.fill_source->directory()->name() : "another checkpoint");
}

std::string evidence_text(const EvidenceValue& value) {
  struct {
    std::string operator()(bool v) { return v ? "yes" : "no"; }
    std::string operator()(std::int64_t v) { return std::to_string(v); }
    std::string operator()(double v) { return number_text(v); }
    std::string operator()(const std::string& v) { return v; }
    std::string operator()(const Extents& v) { return to_text(ExtentsView(v)); }
    std::string operator()(const std::vector<std::string>& v) { return joined(v); }
    std::string operator()(const std::vector<Box>& v) {
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < std::min(v.size(), kMaxSubjects); ++i)
        texts.push_back(to_text(v[i]));
      std::string text = joined(texts);
      return text + and_more(v.size(), kMaxSubjects);
    }
  } words;
  return printable(clipped(std::visit(words, value)));
}

std::optional<TensorId> first_tensor_subject(const Checkpoint& checkpoint, const Finding& finding) {
  for (const std::string& subject : finding.subjects) {
    if (auto tensor = checkpoint.find(subject)) return tensor;
  }
  return std::nullopt;
}

TensorPictures pictures_of(const ReportInput& input, TensorId tensor) {
  TensorPictures pictures;
  pictures.tensor = tensor;
  pictures.saved = saved_tiling(input.checkpoint, tensor);
  if (input.spec != nullptr) {
    if (const SpecEntry* entry = input.spec->find(input.checkpoint.fqn(tensor)))
      pictures.expected = expected_tiling(*entry);
  }
  if (input.plan != nullptr) {
    for (const PlannedTensor& planned : input.plan->tensors) {
      if (planned.tensor != tensor) continue;
      pictures.after = planned_tiling(input.checkpoint, planned);
      for (const Box& box : planned.lost) pictures.lost.push_back({box, std::nullopt});
    }
  }
  const TiledTensor* other = pictures.expected ? &*pictures.expected : nullptr;
  if (other == nullptr && pictures.after) other = &*pictures.after;
  pictures.slice = choose_slice(pictures.saved, other);
  pictures.overview = overview_slice(pictures.saved, pictures.slice);
  return pictures;
}

std::vector<TensorId> listed_tensors(const ReportInput& input) {
  std::vector<TensorId> tensors;
  std::set<TensorId> seen;
  for (const Finding& finding : input.check.findings) {
    for (const std::string& subject : finding.subjects) {
      auto tensor = input.checkpoint.find(subject);
      if (tensors.size() < kMaxRows && tensor && seen.insert(*tensor).second)
        tensors.push_back(*tensor);
    }
  }
  for (std::uint32_t i = 0; i < input.checkpoint.tensor_count(); ++i) {
    if (tensors.size() >= kMaxRows) break;
    if (seen.insert(TensorId{i}).second) tensors.push_back(TensorId{i});
  }
  return tensors;
}

bool loses_no_element(const Plan& plan) {
  return std::all_of(plan.tensors.begin(), plan.tensors.end(),
                     [](const PlannedTensor& tensor) { return tensor.lost_elements == 0; });
}

PlanSum sum_of(const Plan& plan) {
  PlanSum sum;
  for (const Operation& operation : plan.operations) {
    sum.bytes_moved += operation.bytes_moved;
    sum.elements_lost += operation.elements_lost;
  }
  return sum;
}

}  // namespace shw
