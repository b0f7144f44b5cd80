#include "core/report/markdown_tables.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/report/markdown_words.h"
#include "core/report/page_facts.h"
#include "core/report/statistics_cells.h"

namespace shw {
namespace {

// Enough for an issue; the HTML page and tables have more rows.
constexpr std::size_t kMaxPastedRows = 25;
// Shorter tables are not folded.
constexpr std::size_t kOpenRows = 5;

std::string row_of(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + table_cell(cell) + " |";
  return text + "\n";
}

std::string table_head(const std::vector<std::string>& titles, std::size_t first_number) {
  std::string rule = "|";
  for (std::size_t i = 0; i < titles.size(); ++i) rule += i >= first_number ? "---:|" : "---|";
  return row_of(titles) + rule + "\n";
}

std::string name_cell(std::string_view name) {
  return code_span(clipped(name));
}

// A table, folded or not, with the number of omitted rows.
std::string section(const std::string& title, const std::string& counted, const std::string& table,
                    std::size_t all) {
  std::string body = table;
  if (all > kMaxPastedRows)
    body += "\n" + human_count(all - kMaxPastedRows) + " more are not listed.\n";
  return "## " + title + "\n\n" + (all <= kOpenRows ? body + "\n" : fold(counted, body));
}

}  // namespace

std::string markdown_certificate(const ReportInput& input) {
  if (input.certificate == nullptr) return "";
  const Certificate& certificate = *input.certificate;
  std::string text = "## How it was made\n\n**" + loss_verdict(certificate).first +
                     "**: `certificate.json` says: made of " + name_cell(certificate.source) +
                     " by Shardwright " + prose(clipped(certificate.version)) + "; " +
                     tensor_outcomes_text(certificate) + ". `verify` proves it.\n\n";
  const auto lines = certificate_lines(certificate);
  if (lines.empty()) return text;
  std::string list;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxPastedRows); ++i)
    list += "- " + code_span(lines[i].first) + " " + prose(clipped(lines[i].second)) + "\n";
  if (lines.size() > kMaxPastedRows)
    list += "- and " + human_count(lines.size() - kMaxPastedRows) + " more\n";
  return text +
         (lines.size() <= kOpenRows ? list + "\n" : fold(plural(lines.size(), "step"), list));
}

std::string markdown_mesh(const ReportInput& input) {
  std::string text = "## Ranks and mesh\n\n" + prose(ranks_line(input.checkpoint)) + ".\n\n";
  if (input.spec == nullptr) return text;
  const auto meshes = count_tensors_per_mesh(*input.spec);
  if (meshes.empty()) return text + "The spec names no mesh.\n\n";
  std::string table = table_head({"mesh of the spec", "placements", "tensors"}, 2);
  std::size_t shown = 0;
  for (const auto& [words, count] : meshes) {
    if (++shown > kMaxPastedRows) break;
    table += row_of({name_cell(words.first), name_cell(words.second), human_count(count)});
  }
  if (meshes.size() > kMaxPastedRows)
    table += "\n" + human_count(meshes.size() - kMaxPastedRows) + " more ways are not listed.\n";
  return text +
         (meshes.size() <= kOpenRows
              ? table + "\n"
              : fold(plural(meshes.size(), "way") + " in which the spec lays tensors out", table));
}

std::string markdown_files(const ReportInput& input) {
  const std::vector<FileLine> lines = file_lines(input.checkpoint);
  if (lines.empty()) return "";
  std::string table = table_head({"file", "", "rank", "tiles", "bytes"}, 2);
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxPastedRows); ++i) {
    const FileRow& file = input.checkpoint.file(lines[i].file);
    table += row_of({name_cell(file.path), lines[i].state,
                     file.rank ? std::to_string(*file.rank) : "", human_count(lines[i].tiles),
                     file.kind == EntryKind::kFile ? human_bytes(file.size) : ""});
  }
  const auto grave = static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [](const FileLine& line) { return line.has_unreadable_data; }));
  return section(
      "Files",
      plural(lines.size(), "file") +
          (grave == 0 ? "" : ", " + human_count(grave) + " of them not as they should be"),
      table, lines.size());
}

std::string markdown_statistics(const ReportInput& input) {
  if (input.statistics.empty()) return "";
  std::vector<std::string> titles{"tensor"};
  constexpr StatisticsColumn kShown[] = {kElements, kNan, kInf, kZero, kMin, kMax, kMean, kStd};
  for (StatisticsColumn column : kShown) titles.emplace_back(kStatisticsTitles[column]);
  std::string table = table_head(titles, 1);
  const std::vector<std::size_t> order = order_by_anomaly(input.statistics);
  std::size_t sick = 0;
  for (const TensorStatistics& tensor : input.statistics) sick += anomaly_rank(tensor) < 3;
  for (std::size_t i = 0; i < std::min(order.size(), kMaxPastedRows); ++i) {
    const TensorStatistics& tensor = input.statistics[order[i]];
    const StatisticsCells cells = statistics_cells(tensor);
    std::string caveat = statistics_caveat(tensor);
    std::vector<std::string> row{name_cell(tensor.fqn) +
                                 (caveat.empty() ? "" : " " + prose(clipped(caveat)))};
    for (StatisticsColumn column : kShown) row.push_back(cells[column]);
    table += row_of(row);
  }
  return section(
      "Statistics",
      plural(order.size(), "tensor") +
          (sick == 0 ? "" : ", " + human_count(sick) + " of them not whole or not finite"),
      table, order.size());
}

}  // namespace shw
