// The report as one page that works without scripts or network, in light and dark mode.
#include <fmt/core.h>

#include <algorithm>

#include "core/model/evidence.h"
#include "core/repair/run/estimate_text.h"
#include "core/report/ci_forms.h"
#include "core/report/listing.h"
#include "core/report/page_parts.h"
#include "core/report/page_style.h"
#include "core/report/page_tables.h"
#include "core/report/svg_map.h"
#include "core/report/text.h"
#include "core/rules/unjudged.h"

namespace shw {
namespace {

std::span<const PolicyAnswer> requested_policies(const ReportInput& input) {
  return input.asked != nullptr ? input.asked->policies : std::span<const PolicyAnswer>{};
}

// Escapes line by line, because line breaks are control characters too.
std::string escaped_lines(std::string_view text) {
  std::string html;
  while (true) {
    const std::size_t end = text.find('\n');
    html += escaped(text.substr(0, end));
    if (end == std::string_view::npos) return html;
    html += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string head(const ReportInput& input) {
  bool errors = false, warnings = input.check.verdict == Verdict::kUndecided ||
                                  !rules_with_hints(input.check.unjudged).empty();
  for (const Finding& finding : input.check.findings) {
    errors = errors || finding.severity == Severity::kError;
    warnings = warnings || finding.severity == Severity::kWarning;
  }
  for (const PolicyAnswer& policy : requested_policies(input)) {
    errors = errors || policy.verdict == PolicyVerdict::kBroken;
    warnings = warnings || policy.verdict == PolicyVerdict::kUndecided;
  }
  std::string kind = errors ? "error" : warnings ? "warning" : "clean";
  const auto& directory = input.checkpoint.directory();
  std::string name = directory != nullptr ? escaped(directory->name()) : "checkpoint";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         name + ": " + escaped(verdict_sentence(input)) + "</title>\n<style>" + kPageStyle +
         "</style></head><body>\n<header class=\"" + kind + "\"><h1><span class=\"sign\">" +
         (kind == "clean" ? "✓" : "!") + "</span>" + escaped(verdict_sentence(input)) +
         "</h1><p><code>" + name + "</code> · " + escaped(headline(input.checkpoint)) +
         "</p></header>\n<main>\n";
}

// "[288, 8192, 640]" with markup on the numbers that differ from `other`.
std::string mark_differing_extents(const Extents& extents, const Extents& other, const char* mark) {
  std::string text = "[";
  for (std::size_t d = 0; d < extents.size(); ++d) {
    bool differs = d >= other.size() || extents[d] != other[d];
    if (d > 0) text += ", ";
    text += differs ? fmt::format(R"(<b class="{}">{}</b>)", mark, extents[d])
                    : std::to_string(extents[d]);
  }
  return text + "]";
}

std::string evidence(const Finding& finding) {
  if (finding.evidence.empty()) return "";
  const Extents* saved = find_evidence<Extents>(finding, "saved");
  const Extents* expected = find_evidence<Extents>(finding, "expected");
  std::string html = "<h2>Evidence</h2><div class=\"wide\"><table>";
  for (const auto& [key, value] : finding.evidence) {
    std::string text = escaped(evidence_text(value));
    if (saved != nullptr && expected != nullptr && key == "saved")
      text = mark_differing_extents(*saved, *expected, "bad");
    html += "<tr><td class=\"k\" title=\"" + escaped(evidence_description(key)) + "\">" +
            escaped(label_of(key)) + "</td><td><code>" + text + "</code></td></tr>";
  }
  return html + "</table></div>\n";
}

std::string subjects(const std::vector<std::string>& names) {
  std::string html = "<ul class=\"subjects\">";
  for (std::size_t i = 0; i < std::min(names.size(), kMaxSubjects); ++i)
    html += "<li><code>" + escaped(clipped(names[i])) + "</code></li>";
  std::string more = and_more(names.size(), kMaxSubjects);
  if (!more.empty()) html += "<li class=\"quiet\">" + more + "</li>";
  return html + "</ul>\n";
}

std::string remedy(const Finding& finding) {
  if (!finding.remedy) return "<h2>Remedy</h2><p>There is no safe remedy.</p>\n";
  const char* badge = finding.remedy->lossless ? "<span class=\"badge good\">lossless</span>"
                                               : "<span class=\"badge bad\">loses data</span>";
  return "<h2>Remedy</h2><p>" + std::string(badge) + escaped(finding.remedy->text) + "</p>\n";
}

std::string tiles_section(const ReportInput& input, TensorId tensor) {
  TensorPictures pictures = pictures_of(input, tensor);
  const SpecEntry* entry =
      input.spec != nullptr ? input.spec->find(input.checkpoint.fqn(tensor)) : nullptr;
  const Mesh* mesh = entry != nullptr && entry->mesh ? &*entry->mesh : nullptr;
  return "<h2>Tiles of <code>" + escaped(clipped(input.checkpoint.fqn(tensor))) + "</code></h2>" +
         svg_pictures(pictures, palette_of(input.checkpoint, mesh));
}

std::string finding_section(const ReportInput& input, const Finding& finding, bool with_picture) {
  std::string html = "<section class=\"finding " + std::string(word_of(finding.severity)) +
                     "\"><h3><span class=\"rule\">" + escaped(finding.rule) + "</span>" +
                     subjects_counted(input.checkpoint, finding) +
                     baseline_mark_text(input, finding) + "</h3>\n<p class=\"cause\">" +
                     escaped(clipped(finding.cause)) + "</p>\n" + subjects(finding.subjects);
  auto tensor = first_tensor_subject(input.checkpoint, finding);
  if (tensor && with_picture && finding.severity != Severity::kInfo)
    html += tiles_section(input, *tensor);
  html += evidence(finding);
  if (finding.severity != Severity::kInfo || finding.remedy) html += remedy(finding);
  if (!finding.link.empty())
    html += "<p class=\"quiet\">The cause is known upstream: " + escaped(finding.link) + ".</p>\n";
  return html + "</section>\n";
}

std::string findings(const ReportInput& input) {
  const auto& list = input.check.findings;
  std::string html = "<h2>What is wrong</h2>\n";
  if (list.empty()) html += "<p>No finding.</p>\n";
  for (std::size_t i = 0; i < std::min(list.size(), kMaxFindings); ++i)
    html += finding_section(input, list[i], i < kMaxPictured);
  if (list.size() > kMaxFindings)
    html += "<p class=\"quiet\">" + human_count(list.size() - kMaxFindings) +
            " more findings are not on this page; <code>check --json</code> lists all.</p>\n";
  return html;
}

// The tensor that the user was viewing, unless a finding above already shows it.
std::string viewed_tensor_section(const ReportInput& input) {
  if (!input.looked_at) return "";
  const auto& list = input.check.findings;
  for (std::size_t i = 0; i < std::min(list.size(), kMaxPictured); ++i) {
    if (list[i].severity != Severity::kInfo &&
        first_tensor_subject(input.checkpoint, list[i]) == input.looked_at)
      return "";
  }
  const Checkpoint& checkpoint = input.checkpoint;
  return "<h2>What was checked</h2>\n<p><code>" + to_text(checkpoint.shape(*input.looked_at)) +
         "</code> " + std::string(name(checkpoint.dtype(*input.looked_at))) + ", " +
         plural(checkpoint.chunks(*input.looked_at).size(), "tile") + "</p>\n" +
         tiles_section(input, *input.looked_at);
}

// "tile [0:4096, 0:32], rank 3, in __3_0.distcp"
std::string chunk_place_text(const Checkpoint& checkpoint, ChunkId tile) {
  std::string text = "tile " + to_text(box_of(checkpoint, tile));
  if (auto writer = checkpoint.writer(tile)) text += ", rank " + std::to_string(*writer);
  if (auto item = checkpoint.item(tile))
    text += ", in " + checkpoint.files()[index_of(item->file)].path;
  return text;
}

std::string views_section(const ReportInput& input) {
  if (input.views.empty()) return "";
  std::string html = "<h2>Saved views</h2>\n";
  for (const PageView& view : input.views.first(std::min(input.views.size(), kMaxViews))) {
    html += "<section>";
    if (!view.note.empty()) html += "<p>" + escaped(clipped(view.note)) + "</p>";
    if (!view.finding.empty())
      html += "<p>finding <code>" + escaped(clipped(view.finding)) + "</code></p>";
    if (view.tile)
      html += "<p><code>" + escaped(clipped(chunk_place_text(input.checkpoint, *view.tile))) +
              "</code></p>";
    html += tiles_section(input, view.tensor) + "</section>\n";
  }
  const std::string more = and_more(input.views.size(), kMaxViews);
  return html + (more.empty() ? "" : "<p class=\"quiet\">" + more + "</p>\n");
}

std::string unjudged_section(const ReportInput& input) {
  if (input.check.unjudged.empty()) return "";
  std::string html =
      "<h2>What was not checked</h2><div class=\"wide\"><table><tr><th>what</th><th>what would "
      "decide it</th></tr>";
  for (const Unjudged& one : input.check.unjudged)
    html += "<tr><td>" + escaped(one.what) + "</td><td>" + escaped(one.needs) + "</td></tr>";
  return html + "</table></div>\n";
}

std::string requested_section(const ReportInput& input) {
  std::string text = requested_text(input);
  return text.empty() ? ""
                      : "<h2>What was known, and what is required</h2><pre>" + escaped_lines(text) +
                            "</pre>\n";
}

std::string plan_section(const ReportInput& input) {
  if (input.plan == nullptr || input.plan->empty()) return "";
  PlanSum sum = sum_of(*input.plan);
  std::string html =
      "<h2>What a repair does</h2><div "
      "class=\"wide\"><table><tr><th>operation</th><th>what</th><th class=\"n\">tensors"
      "</th><th class=\"n\">bytes moved</th><th class=\"n\">elements lost</th></tr>";
  for (const Operation& operation : input.plan->operations) {
    html += "<tr><td class=\"o\"><code>" + std::string(name(operation.kind)) + "</code></td><td>" +
            escaped(operation.text) + "</td><td class=\"n\">" + human_count(operation.tensors()) +
            "</td><td class=\"n\">" + human_bytes(operation.bytes_moved) + "</td><td class=\"n" +
            (operation.elements_lost > 0 ? " bad" : "") + "\">" +
            human_count(static_cast<std::uint64_t>(operation.elements_lost)) + "</td></tr>";
  }
  html += "</table></div>\n<p>";
  const std::string left = left_out_entries_text(input.plan->of_other_ranks);
  if (!left.empty()) html += escaped(left) + "</p>\n<p>";
  html += input.plan->lossless && input.plan->undecided.empty()
              ? "<span class=\"badge good\">nothing is lost</span>"
          : input.plan->lossless ? "<span class=\"badge gold\">these steps lose nothing</span>"
          : loses_no_element(*input.plan) && !left.empty()
              ? "<span class=\"badge gold\">no element is lost</span>"
              : "<span class=\"badge bad\">" +
                    plural(static_cast<std::uint64_t>(sum.elements_lost), "element") +
                    " lost</span>";
  return html + "<span class=\"badge gold\">" + human_bytes(sum.bytes_moved) +
         " moved</span></p>\n";
}

std::string lost_section(const ReportInput& input) {
  if (input.plan == nullptr || loses_no_element(*input.plan)) return "";
  std::string html =
      "<h2>What is lost</h2><div class=\"wide\"><table><tr><th>tensor</th><th "
      "class=\"n\">elements</th>"
      "<th>filled with</th><th>boxes</th></tr>";
  std::size_t shown = 0, all = 0;
  for (const PlannedTensor& planned : input.plan->tensors) {
    if (planned.lost_elements == 0 || ++all > kMaxRows) continue;
    ++shown;
    html += "<tr><td><code>" + escaped(clipped(input.checkpoint.fqn(planned.tensor))) +
            "</code></td><td class=\"n\">" +
            human_count(static_cast<std::uint64_t>(planned.lost_elements)) + "</td><td><code>" +
            escaped(clipped(fill_text(planned))) + "</code></td><td><code>" +
            escaped(evidence_text(planned.lost)) + "</code></td></tr>";
  }
  return html + "</table></div>\n<p class=\"quiet\">" + plural(shown, "tensor") +
         and_more(all, shown) + "</p>\n";
}

std::string undecided_section(const ReportInput& input) {
  if (input.plan == nullptr || input.plan->undecided.empty()) return "";
  std::string html = "<h2>What a repair does not mend</h2><ul>";
  const auto& list = input.plan->undecided;
  for (std::size_t i = 0; i < std::min(list.size(), kMaxFindings); ++i)
    html += "<li><code>" + escaped(list[i].rule) + "</code> " + escaped(list[i].cause) + "</li>";
  return html + "</ul><p class=\"quiet\">" + plural(list.size(), "finding") + "</p>\n";
}

std::string tensors(const ReportInput& input) {
  std::vector<TensorId> rows = listed_tensors(input);
  std::string html =
      "<h2>Tensors</h2><div class=\"wide\"><table><tr><th>name</th><th>shape</th><th>dtype</th><th "
      "class=\"n\">tiles"
      "</th><th class=\"n\">bytes</th></tr>\n";
  for (TensorId tensor : rows) {
    html += "<tr><td><code>" + escaped(clipped(input.checkpoint.fqn(tensor))) +
            "</code></td><td><code>" + to_text(input.checkpoint.shape(tensor)) +
            "</code></td><td>" + std::string(name(input.checkpoint.dtype(tensor))) +
            "</td><td class=\"n\">" + human_count(input.checkpoint.chunks(tensor).size()) +
            "</td><td class=\"n\">" + human_bytes(bytes_of(input.checkpoint, tensor)) +
            "</td></tr>\n";
  }
  html += "</table></div>\n";
  if (rows.size() < input.checkpoint.tensor_count())
    html += "<p class=\"quiet\">" + human_count(rows.size()) + " of " +
            human_count(input.checkpoint.tensor_count()) +
            " tensors are listed, those with findings first.</p>\n";
  return html;
}

}  // namespace

std::string report_html(const ReportInput& input) {
  std::string html = head(input);
  html += findings(input);
  html += viewed_tensor_section(input);
  html += views_section(input);
  html += requested_section(input);
  html += unjudged_section(input);
  html += plan_section(input);
  html += lost_section(input);
  html += undecided_section(input);
  html += "<h2>How to see it yourself</h2><pre>" + escaped_lines(input.command) +
          "</pre>\n<p>Depth: " + std::string(name(input.check.depth)) + ". " +
          escaped(input.check.deeper) + "</p>\n";
  html += certificate_section(input) + mesh_section(input);
  html += files_section(input) + statistics_section(input) + tensors(input);
  return html + "</main></body></html>\n";
}

}  // namespace shw
