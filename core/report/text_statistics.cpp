#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/report/statistics_cells.h"
#include "core/report/statistics_report.h"

namespace shw {
namespace {

// Columns that narrow terminals omit, in this order.
constexpr StatisticsColumn kOmittableColumns[] = {kDenormal, kZero, kDtype, kElements};
constexpr std::size_t kColumnsOmittedFirst = 3;  // omitted before names get lines of their own

struct StatisticsLayout {
  std::size_t name = 0;  // width of names; 0: names have their own lines
  std::array<std::size_t, kStatisticsColumns> widths{};
  std::array<bool, kStatisticsColumns> shown{};
};

std::size_t columns_of(const StatisticsLayout& layout) {
  std::size_t sum = layout.name;
  for (std::size_t c = 0; c < kStatisticsColumns; ++c)
    sum += layout.shown[c] ? layout.widths[c] + 2 : 0;
  return sum;
}

// Omits up to `spared` columns; false if that does not suffice.
bool drop_columns_to_fit(StatisticsLayout& layout, std::size_t spared, std::size_t width) {
  layout.shown.fill(true);
  for (std::size_t i = 0; i < spared && columns_of(layout) > width; ++i)
    layout.shown[kOmittableColumns[i]] = false;
  return columns_of(layout) <= width;
}

StatisticsLayout layout_of(std::span<const TensorStatistics> tensors,
                           const std::vector<StatisticsCells>& cells, std::size_t width) {
  StatisticsLayout layout;
  layout.name = std::string_view("tensor").size();
  for (const TensorStatistics& tensor : tensors)
    layout.name = std::max(layout.name, display_width(printable(tensor.fqn)));
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) {
    layout.widths[c] = std::string_view(kStatisticsTitles[c]).size();
    for (const StatisticsCells& row : cells)
      layout.widths[c] = std::max(layout.widths[c], display_width(row[c]));
  }
  if (drop_columns_to_fit(layout, kColumnsOmittedFirst, width)) return layout;
  layout.name = 0;
  drop_columns_to_fit(layout, std::size(kOmittableColumns), width);
  return layout;
}

std::string line_of(const StatisticsLayout& layout, const std::string& name,
                    const StatisticsCells& cells) {
  std::string line = layout.name == 0 ? name + "\n" : padded(name, layout.name);
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) {
    if (!layout.shown[c]) continue;
    line += "  " + (c == kDtype ? padded(cells[c], layout.widths[c])
                                : right_aligned(cells[c], layout.widths[c]));
  }
  return line;
}

// Names the omitted columns; empty if there are none.
std::string omitted_columns_text(const StatisticsLayout& layout) {
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) {
    if (!layout.shown[c]) titles.emplace_back(kStatisticsTitles[c]);
  }
  if (titles.empty()) return "";
  return "no room for " + short_list_text(titles, titles.size()) +
         ": --json and a wider terminal have " + (titles.size() == 1 ? "it" : "them");
}

// "4 tensors · 1 with NaN · 1 not whole"
std::string sum_of(std::span<const TensorStatistics> tensors, const TextStyle& style) {
  const std::string separator = style.utf8 ? " · " : ", ";
  std::string text = plural(tensors.size(), "tensor");
  constexpr const char* kWords[] = {" not whole", " with NaN", " with infinities",
                                    " mostly denormal"};
  for (int kind = 0; kind < 4; ++kind) {
    auto count = std::count_if(tensors.begin(), tensors.end(),
                               [&](const auto& tensor) { return anomaly_rank(tensor) == kind; });
    if (count != 0)
      text += separator + human_count(static_cast<std::uint64_t>(count)) + kWords[kind];
  }
  return text;
}

}  // namespace

std::string statistics_to_text(std::span<const TensorStatistics> tensors, const TextStyle& style,
                               std::span<const std::string> unread) {
  std::vector<StatisticsCells> cells;
  for (const TensorStatistics& tensor : tensors) cells.push_back(statistics_cells(tensor));
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  const StatisticsLayout layout = layout_of(tensors, cells, width);
  StatisticsCells titles;
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) titles[c] = kStatisticsTitles[c];
  std::string text = inked(style, Ink::kQuiet, line_of(layout, "tensor", titles)) + "\n";
  constexpr Ink kInks[] = {Ink::kRed, Ink::kRed, Ink::kGold, Ink::kGold, Ink::kPlain};
  for (std::size_t i : order_by_anomaly(tensors)) {
    const TensorStatistics& tensor = tensors[i];
    text += inked(style, kInks[anomaly_rank(tensor)],
                  line_of(layout, printable(tensor.fqn), cells[i])) +
            "\n";
    std::string why = printable(statistics_caveat(tensor));
    if (!why.empty()) text += wrapped(why, 4, width) + "\n";
  }
  for (const std::string& file : unread)
    text += inked(style, Ink::kRed, printable(file) + ": what it holds is not known") + "\n";
  text += inked(style, Ink::kQuiet, sum_of(tensors, style)) + "\n";
  const std::string left_out = omitted_columns_text(layout);
  if (!left_out.empty()) text += inked(style, Ink::kQuiet, wrapped(left_out, 0, width)) + "\n";
  return text;
}

}  // namespace shw
