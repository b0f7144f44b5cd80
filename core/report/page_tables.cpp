#include "core/report/page_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/report/page_facts.h"
#include "core/report/statistics_cells.h"
#include "core/report/svg_map.h"

namespace shw {
namespace {

constexpr std::size_t kMaxMeshes = 50;

// On narrow pages the table scrolls by itself.
std::string wide_table(const std::string& rows) {
  return "<div class=\"wide\"><table>" + rows + "</table></div>\n";
}

std::string quiet_line(const std::string& text) {
  return text.empty() ? "" : "<p class=\"quiet\">" + text + "</p>\n";
}

std::string number_cell(const std::string& text) {
  return "<td class=\"n\">" + text + "</td>";
}

// Histogram over powers of two, positive numbers upwards and negative ones downwards; heights are
// logarithms of counts.
std::string histogram_svg(const std::vector<PowerBucket>& buckets) {
  if (buckets.empty()) return "";
  auto by_power = [](const auto& a, const auto& b) { return a.exponent < b.exponent; };
  auto [low, high] = std::minmax_element(buckets.begin(), buckets.end(), by_power);
  std::uint64_t most = 1;
  for (const PowerBucket& bucket : buckets) most = std::max(most, bucket.count);
  const double step = 120.0 / (high->exponent - low->exponent + 1);
  std::string path;
  for (const PowerBucket& bucket : buckets) {
    double part = std::log2(1.0 + static_cast<double>(bucket.count)) /
                  std::log2(1.0 + static_cast<double>(most));
    path += fmt::format("M{:.1f} 12v{:.1f}", (bucket.exponent - low->exponent + 0.5) * step,
                        -12.0 * part * bucket.sign);
  }
  return fmt::format(
      "<svg class=\"bars\" role=\"img\" aria-label=\"2^{0} to 2^{1}\" width=\"120\" "
      "height=\"24\" viewBox=\"0 0 120 24\"><title>2^{0} to 2^{1}</title>"
      "<path d=\"{2}\" stroke-width=\"{3:.1f}\"/></svg>",
      low->exponent, high->exponent, path, std::max(0.6, step * 0.8));
}

std::string statistics_row(const TensorStatistics& tensor) {
  StatisticsCells cells = statistics_cells(tensor);
  const bool is_sick = anomaly_rank(tensor) < 3;
  std::string name = "<code>" + escaped(clipped(tensor.fqn)) + "</code>";
  if (std::string why = statistics_caveat(tensor); !why.empty())
    name += "<br><span class=\"bad\">" + escaped(clipped(why)) + "</span>";
  std::string html =
      "<tr" + std::string(is_sick ? " class=\"bad\"" : "") + "><td>" + name + "</td>";
  for (StatisticsColumn column : {kElements, kNan, kInf, kZero, kMin, kMax, kMean, kStd})
    html += number_cell(escaped(cells[column]));
  return html + "<td>" + histogram_svg(tensor.statistics.histogram) + "</td></tr>\n";
}

std::string loss_verdict_badge(const Certificate& certificate) {
  auto [words, is_good] = loss_verdict(certificate);
  return std::string("<span class=\"badge ") + (is_good ? "good" : "bad") + "\">" + words +
         "</span>";
}

}  // namespace

std::string mesh_section(const ReportInput& input) {
  std::string html =
      "<h2>Ranks and mesh</h2>\n<p>" + escaped(ranks_line(input.checkpoint)) + ".</p>\n";
  if (input.spec == nullptr) return html;
  auto counts = count_tensors_per_mesh(*input.spec);
  if (counts.empty()) return html + quiet_line("The spec names no mesh.");
  std::string rows =
      "<tr><th>mesh of the spec</th><th>placements</th><th class=\"n\">tensors</th></tr>\n";
  std::size_t shown = 0;
  for (const auto& [words, count] : counts) {
    if (++shown > kMaxMeshes) break;
    rows += "<tr><td><code>" + escaped(clipped(words.first)) + "</code></td><td><code>" +
            escaped(clipped(words.second)) + "</code></td>" + number_cell(human_count(count)) +
            "</tr>\n";
  }
  html += wide_table(rows);
  if (counts.size() > kMaxMeshes)
    html += quiet_line(human_count(counts.size() - kMaxMeshes) + " more ways are not listed.");
  return html;
}

std::string files_section(const ReportInput& input) {
  const std::vector<FileLine> lines = file_lines(input.checkpoint);
  if (lines.empty()) return "";
  std::string rows =
      "<tr><th>file</th><th class=\"n\">rank</th><th class=\"n\">tiles</th>"
      "<th class=\"n\">bytes</th><th></th></tr>\n";
  for (std::size_t k = 0; k < std::min(lines.size(), kMaxRows); ++k) {
    const FileLine& line = lines[k];
    const FileRow& file = input.checkpoint.file(line.file);
    rows += "<tr><td><code>" + escaped(clipped(file.path)) + "</code></td>" +
            number_cell(file.rank ? std::to_string(*file.rank) : "") +
            number_cell(human_count(line.tiles)) +
            number_cell(file.kind == EntryKind::kFile ? human_bytes(file.size) : "") +
            "<td class=\"" + (line.has_unreadable_data ? "bad" : "quiet") + "\">" + line.state +
            "</td></tr>\n";
  }
  std::string html = "<h2>Files</h2>\n" + wide_table(rows);
  if (lines.size() > kMaxRows)
    html += quiet_line(human_count(kMaxRows) + " of " + human_count(lines.size()) +
                       " files are listed, those that are not there first.");
  return html;
}

std::string statistics_section(const ReportInput& input) {
  if (input.statistics.empty()) return "";
  std::string rows = "<tr><th>tensor</th>";
  for (StatisticsColumn column : {kElements, kNan, kInf, kZero, kMin, kMax, kMean, kStd})
    rows += std::string("<th class=\"n\">") + kStatisticsTitles[column] + "</th>";
  rows += "<th>powers of two</th></tr>\n";
  std::vector<std::size_t> order = order_by_anomaly(input.statistics);
  for (std::size_t k = 0; k < std::min(order.size(), kMaxRows); ++k)
    rows += statistics_row(input.statistics[order[k]]);
  std::string html = "<h2>Statistics</h2>\n" + wide_table(rows);
  if (order.size() > kMaxRows)
    html += quiet_line(human_count(kMaxRows) + " of " + human_count(order.size()) +
                       " tensors are listed; <code>stats --json</code> has all.");
  return html;
}

std::string certificate_section(const ReportInput& input) {
  if (input.certificate == nullptr) return "";
  const Certificate& certificate = *input.certificate;
  std::string html = "<h2>How it was made</h2>\n<p>" + loss_verdict_badge(certificate) +
                     "<code>certificate.json</code> says: made of <code>" +
                     escaped(clipped(certificate.source)) + "</code> by Shardwright " +
                     escaped(clipped(certificate.version)) + "; " +
                     tensor_outcomes_text(certificate) + ". <code>verify</code> proves it.</p>\n";
  const auto lines = certificate_lines(certificate);
  std::string rows;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxFindings); ++i)
    rows += "<tr><td class=\"o\"><code>" + escaped(lines[i].first) + "</code></td><td>" +
            escaped(clipped(lines[i].second)) + "</td></tr>\n";
  if (!rows.empty()) html += wide_table(rows);
  return html + quiet_line(lines.size() > kMaxFindings ? human_count(lines.size() - kMaxFindings) +
                                                             " more lines are not listed."
                                                       : "");
}

}  // namespace shw
