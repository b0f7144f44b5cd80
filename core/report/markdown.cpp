// The report as Markdown for issues and pull requests. Names are in code spans, so that they are
// not interpreted as markup.
#include <algorithm>

#include "core/repair/run/estimate_text.h"
#include "core/report/listing.h"
#include "core/report/map_text.h"
#include "core/report/markdown_tables.h"
#include "core/report/markdown_words.h"
#include "core/report/page_parts.h"
#include "core/report/text.h"

namespace shw {
namespace {

// GitHub limits issues to 65,536 characters; sections beyond are omitted and listed.
constexpr std::size_t kMaxPasted = 60'000, kMaxOfFindings = 40'000;
// subjects of a finding shown unfolded
constexpr std::size_t kOpenSubjects = 5;

std::string subjects_list(const std::vector<std::string>& subjects) {
  std::string open, folded;
  const std::size_t shown = std::min(subjects.size(), kMaxSubjects);
  for (std::size_t i = 0; i < shown; ++i)
    (i < kOpenSubjects ? open : folded) += "- " + code_span(clipped(subjects[i])) + "\n";
  if (subjects.size() > shown) folded += "-" + and_more(subjects.size(), shown) + "\n";
  if (folded.empty()) return open;
  return open + "\n" + fold(human_count(subjects.size() - kOpenSubjects) + " more", folded);
}

std::string finding_paragraph(const ReportInput& input, const Finding& finding, bool with_picture) {
  std::string counted = subjects_counted(input.checkpoint, finding);
  std::string text = "### " + std::string(word_of(finding.severity)) + ": " +
                     code_span(finding.rule) + (counted.empty() ? "" : ", " + counted) +
                     baseline_mark_text(input, finding) + "\n\n" + prose(clipped(finding.cause)) +
                     "\n\n";
  text += subjects_list(finding.subjects);
  auto tensor = first_tensor_subject(input.checkpoint, finding);
  if (tensor && with_picture && finding.severity != Severity::kInfo) {
    TensorPictures pictures = pictures_of(input, *tensor);
    const TiledTensor* expected = pictures.expected ? &*pictures.expected : nullptr;
    text += "\n" + code_block(map_to_text(std::string(input.checkpoint.fqn(*tensor)),
                                          pictures.saved, expected, {false, true, 100}));
  }
  if (!finding.evidence.empty()) {
    text += "\n| evidence | |\n|---|---|\n";
    for (const auto& [key, value] : finding.evidence)
      text += "| " + table_cell(prose(label_of(key))) + " | " +
              table_cell(code_span(evidence_text(value))) + " |\n";
  }
  if (finding.remedy) {
    text += "\n**Remedy" + std::string(finding.remedy->lossless ? "" : ", which loses data") +
            "**: " + prose(finding.remedy->text) + "\n";
  } else if (finding.severity != Severity::kInfo) {
    text += "\n**Remedy**: there is no safe one.\n";
  }
  if (!finding.link.empty())
    text += "\nThe cause is known upstream: " + prose(finding.link) + ".\n";
  return text + "\n";
}

std::string requested_list(const ReportInput& input) {
  std::string text = requested_text(input);
  return text.empty() ? ""
                      : "## What was known, and what is required\n\n" + code_block(text) + "\n";
}

std::string unjudged_list(const ReportInput& input) {
  if (input.check.unjudged.empty()) return "";
  std::string text = "## What was not checked\n\n| what | what would decide it |\n|---|---|\n";
  for (const Unjudged& one : input.check.unjudged)
    text += "| " + table_cell(prose(one.what)) + " | " + table_cell(prose(one.needs)) + " |\n";
  return text + "\n";
}

std::string plan_list(const ReportInput& input) {
  if (input.plan == nullptr) return "";
  std::string text;
  PlanSum sum = sum_of(*input.plan);
  if (!input.plan->empty()) {
    text +=
        "## What a repair does\n\n| operation | what | tensors | bytes moved | elements lost |\n"
        "|---|---|---:|---:|---:|\n";
    for (const Operation& operation : input.plan->operations) {
      text += "| " + code_span(name(operation.kind)) + " | " + table_cell(prose(operation.text)) +
              " | " + human_count(operation.tensors()) + " | " +
              human_bytes(operation.bytes_moved) + " | " +
              human_count(static_cast<std::uint64_t>(operation.elements_lost)) + " |\n";
    }
    text += "\n" +
            (input.plan->lossless
                 ? std::string(input.plan->undecided.empty() ? "Nothing is lost"
                                                             : "These steps lose nothing")
             : loses_no_element(*input.plan) && !input.plan->of_other_ranks.empty()
                 ? std::string("No element is lost")
                 : plural(static_cast<std::uint64_t>(sum.elements_lost), "element") +
                       (sum.elements_lost == 1 ? " is lost" : " are lost")) +
            "; " + human_bytes(sum.bytes_moved) + " of tensors move.\n\n";
    const std::string left = left_out_entries_text(input.plan->of_other_ranks);
    if (!left.empty()) text += prose(left) + "\n\n";
  }
  if (!input.plan->undecided.empty()) {
    text += "## What a repair does not mend\n\n";
    const auto& list = input.plan->undecided;
    for (std::size_t i = 0; i < std::min(list.size(), kMaxFindings); ++i)
      text += "- " + code_span(list[i].rule) + ": " + prose(list[i].cause) + "\n";
    text += "\n";
  }
  return text;
}

std::string lost_list(const ReportInput& input) {
  if (input.plan == nullptr || loses_no_element(*input.plan)) return "";
  std::string text =
      "## What is lost\n\n| tensor | elements | filled with | boxes |\n|---|---:|---|---|\n";
  std::size_t all = 0;
  for (const PlannedTensor& planned : input.plan->tensors) {
    if (planned.lost_elements == 0 || ++all > kMaxRows) continue;
    text += "| " + table_cell(code_span(clipped(input.checkpoint.fqn(planned.tensor)))) + " | " +
            human_count(static_cast<std::uint64_t>(planned.lost_elements)) + " | " +
            table_cell(code_span(clipped(fill_text(planned)))) + " | " +
            table_cell(code_span(evidence_text(planned.lost))) + " |\n";
  }
  if (all > kMaxRows) text += "\n" + human_count(all - kMaxRows) + " more tensors.\n";
  return text + "\n";
}

std::string findings_list(const ReportInput& input) {
  const auto& list = input.check.findings;
  if (list.empty()) return "## What is wrong\n\nNo finding.\n\n";
  std::string text = "## What is wrong\n\n";
  std::size_t told = 0;
  for (; told < std::min(list.size(), kMaxFindings); ++told) {
    std::string paragraph = finding_paragraph(input, list[told], told < kMaxPictured);
    if (told != 0 && text.size() + paragraph.size() > kMaxOfFindings) break;
    text += paragraph;
  }
  if (list.size() > told)
    text += human_count(list.size() - told) +
            " more findings are not listed; `check --json` lists all.\n\n";
  return text;
}

// Commands that repeat the check. Paths may contain control characters of terminals.
std::string command_part(const ReportInput& input) {
  std::string lines;
  std::string_view left = input.command;
  while (true) {
    const std::size_t end = left.find('\n');
    lines += printable(left.substr(0, end)) + "\n";
    if (end == left.npos) break;
    left.remove_prefix(end + 1);
  }
  return "## How to see it yourself\n\n" + code_block(lines) +
         "\nDepth: " + std::string(name(input.check.depth)) + ". " + prose(input.check.deeper) +
         "\n";
}

// In order of importance; `title` is listed if the section is omitted.
struct MarkdownSection {
  const char* title;
  std::string (*make)(const ReportInput&);
};
constexpr MarkdownSection kSections[] = {
    {"what was known, and what is required", requested_list},
    {"what was not checked", unjudged_list},
    {"what a repair does", plan_list},
    {"what is lost", lost_list},
    {"how it was made", markdown_certificate},
    {"ranks and mesh", markdown_mesh},
    {"files", markdown_files},
    {"statistics", markdown_statistics},
};

}  // namespace

std::string report_markdown(const ReportInput& input) {
  const auto& directory = input.checkpoint.directory();
  std::string text = "# " + verdict_sentence(input) + "\n\n";
  if (directory != nullptr) text += code_span(directory->name()) + " · ";
  text += prose(headline(input.checkpoint)) + "\n\n" + findings_list(input);
  const std::string command = command_part(input);
  std::string left_out;
  for (const MarkdownSection& section : kSections) {
    std::string words = section.make(input);
    if (text.size() + words.size() + command.size() <= kMaxPasted)
      text += words;
    else
      left_out += (left_out.empty() ? "" : ", ") + std::string(section.title);
  }
  if (!left_out.empty())
    text += "Left out, since an issue would not take so much: " + left_out +
            ". `--format html` has all.\n\n";
  return text + command;
}

}  // namespace shw
