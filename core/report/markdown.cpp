// The report as Markdown, for issues and pull requests. Names stand in code spans: nothing in them
// is markup.
#include <algorithm>

#include "core/report/listing.h"
#include "core/report/map_text.h"
#include "core/report/page_parts.h"
#include "core/report/text.h"

namespace shw {
namespace {

std::size_t longest_run(std::string_view text, char wanted) {
  std::size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == wanted ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// A code span that no backtick inside can end.
std::string code(std::string_view text) {
  std::string safe = printable(text);
  std::string fence(longest_run(safe, '`') + 1, '`');
  bool pad = safe.empty() || safe.front() == '`' || safe.back() == '`';
  return fence + (pad ? " " : "") + safe + (pad ? " " : "") + fence;
}

std::string block(const std::string& text) {
  std::string fence(std::max<std::size_t>(3, longest_run(text, '`') + 1), '`');
  return fence + "\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n";
}

// Prose from files (causes quote names): characters that Markdown or HTML would read are escaped.
std::string prose(std::string_view text) {
  std::string safe;
  for (char c : printable(text)) {
    if (std::string_view("\\`*_{}[]<>#|!~&").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

// In a table a bar would end the cell, even inside a code span.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    if (at == 0 || text[at - 1] != '\\') text.insert(at, "\\");
  }
  return text;
}

std::string finding_paragraph(const ReportInput& input, const Finding& finding, bool with_picture) {
  std::string counted = subjects_counted(input.checkpoint, finding);
  std::string text = "### " + std::string(word_of(finding.severity)) + ": " + code(finding.rule) +
                     (counted.empty() ? "" : ", " + counted) + known_words(input, finding) +
                     "\n\n" + prose(clipped(finding.cause)) + "\n\n";
  for (std::size_t i = 0; i < std::min(finding.subjects.size(), kMostSubjects); ++i)
    text += "- " + code(clipped(finding.subjects[i])) + "\n";
  std::string more = and_more(finding.subjects.size(), kMostSubjects);
  if (!more.empty()) text += "-" + more + "\n";
  auto tensor = pictured(input.checkpoint, finding);
  if (tensor && with_picture && finding.severity != Severity::kInfo) {
    TensorPictures pictures = pictures_of(input, *tensor);
    const LaidTensor* expected = pictures.expected ? &*pictures.expected : nullptr;
    text += "\n" + block(map_to_text(std::string(input.checkpoint.fqn(*tensor)), pictures.saved,
                                     expected, {false, true, 100}));
  }
  if (!finding.evidence.empty()) {
    text += "\n| evidence | |\n|---|---|\n";
    for (const auto& [key, value] : finding.evidence)
      text += "| " + cell(prose(label_of(key))) + " | " + cell(code(evidence_text(value))) + " |\n";
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

std::string asked_list(const ReportInput& input) {
  std::string text = asked_text(input);
  return text.empty() ? "" : "## What was known, and what is required\n\n" + block(text) + "\n";
}

std::string unjudged_list(const ReportInput& input) {
  if (input.check.unjudged.empty()) return "";
  std::string text = "## What was not judged\n\n| what | what would decide it |\n|---|---|\n";
  for (const Unjudged& one : input.check.unjudged)
    text += "| " + cell(prose(one.what)) + " | " + cell(prose(one.needs)) + " |\n";
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
      text += "| " + code(name(operation.kind)) + " | " + cell(prose(operation.text)) + " | " +
              human_count(operation.subjects.size()) + " | " + human_bytes(operation.bytes_moved) +
              " | " + human_count(static_cast<std::uint64_t>(operation.elements_lost)) + " |\n";
    }
    text +=
        "\n" +
        (input.plan->lossless ? std::string("Nothing is lost")
                              : plural(static_cast<std::uint64_t>(sum.elements_lost), "element") +
                                    (sum.elements_lost == 1 ? " is lost" : " are lost")) +
        "; " + human_bytes(sum.bytes_moved) + " of tensors move.\n\n";
  }
  if (!input.plan->undecided.empty()) {
    text += "## What a repair does not mend\n\n";
    const auto& list = input.plan->undecided;
    for (std::size_t i = 0; i < std::min(list.size(), kMostFindings); ++i)
      text += "- " + code(list[i].rule) + ": " + prose(list[i].cause) + "\n";
    text += "\n";
  }
  return text;
}

std::string lost_list(const ReportInput& input) {
  if (input.plan == nullptr || input.plan->lossless) return "";
  std::string text =
      "## What is lost\n\n| tensor | elements | filled with | boxes |\n|---|---:|---|---|\n";
  std::size_t all = 0;
  for (const PlannedTensor& planned : input.plan->tensors) {
    if (planned.lost_elements == 0 || ++all > kMostRows) continue;
    text += "| " + cell(code(clipped(input.checkpoint.fqn(planned.tensor)))) + " | " +
            human_count(static_cast<std::uint64_t>(planned.lost_elements)) + " | " +
            cell(code(clipped(fill_text(planned)))) + " | " +
            cell(code(evidence_text(planned.lost))) + " |\n";
  }
  if (all > kMostRows) text += "\n" + human_count(all - kMostRows) + " more tensors.\n";
  return text + "\n";
}

}  // namespace

std::string report_markdown(const ReportInput& input) {
  const auto& directory = input.checkpoint.directory();
  std::string text = "# " + verdict_sentence(input) + "\n\n";
  if (directory != nullptr) text += code(directory->name()) + " · ";
  text += prose(headline(input.checkpoint)) + "\n\n## What is wrong\n\n";
  const auto& list = input.check.findings;
  if (list.empty()) text += "No finding.\n\n";
  for (std::size_t i = 0; i < std::min(list.size(), kMostFindings); ++i)
    text += finding_paragraph(input, list[i], i < kMostPictured);
  if (list.size() > kMostFindings)
    text += human_count(list.size() - kMostFindings) +
            " more findings are not listed; `check --json` lists all.\n\n";
  text += asked_list(input) + unjudged_list(input) + plan_list(input) + lost_list(input);
  return text + "## How to see it yourself\n\n" + block(input.command) +
         "\nDepth: " + std::string(name(input.check.depth)) + ". " + prose(input.check.deeper) +
         "\n";
}

}  // namespace shw
