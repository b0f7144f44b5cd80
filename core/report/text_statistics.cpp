#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/base/words.h"
#include "core/report/statistics_report.h"

namespace shw {
namespace {

// In the order in which columns stand; a narrow terminal does without some, these first.
enum StatisticsColumn { kDtype, kElements, kNan, kInf, kZero, kDenormal, kMin, kMax, kMean, kStd };
constexpr std::size_t kStatisticsColumns = 10;
constexpr const char* kColumnTitles[kStatisticsColumns] = {
    "dtype", "elements", "nan", "inf", "zero", "denormal", "min", "max", "mean", "std"};
constexpr StatisticsColumn kSpared[] = {kDenormal, kZero, kDtype, kElements};
constexpr std::size_t kSparedBeside = 3;  // of them, beside a name

using StatisticsCells = std::array<std::string, kStatisticsColumns>;

// The gravest first: 0 is not whole, 1 NaN, 2 infinities, 3 mostly denormal, 4 nothing odd.
int sickness(const TensorStatistics& tensor) {
  const Statistics& s = tensor.statistics;
  if (!tensor.is_whole()) return 0;
  if (s.nan != 0) return 1;
  if (s.infinite != 0) return 2;
  return s.denormal * 2 > s.elements - s.zero ? 3 : 4;
}

// An element as its exact text says it, in three digits.
std::string short_element(const std::string& text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return text;
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return short_number(number);
}

StatisticsCells cells_of(const TensorStatistics& tensor) {
  const Statistics& s = tensor.statistics;
  StatisticsCells cells;
  cells[kDtype] = name(tensor.dtype);
  cells[kElements] = human_count(s.elements);
  cells[kZero] = share(s.zero, s.elements);
  if (s.kind != NumberKind::kOpaque) {
    cells[kNan] = human_count(s.nan);
    cells[kInf] = human_count(s.infinite);
    cells[kDenormal] = share(s.denormal, s.elements);
  }
  cells[kMin] = short_element(s.least);
  cells[kMax] = short_element(s.greatest);
  cells[kMean] = s.mean ? short_number(*s.mean) : "";
  cells[kStd] = s.std ? short_number(*s.std) : "";
  for (std::string& cell : cells) {
    if (cell.empty()) cell = "-";
  }
  return cells;
}

// What a person has to know before the numbers; empty where they are the tensor's.
std::string caveat(const TensorStatistics& tensor) {
  std::vector<std::string> parts;
  auto add = [&](std::int64_t count, const char* what) {
    if (count != 0)
      parts.push_back((tensor.at_least ? "at least " : "") +
                      plural(static_cast<std::uint64_t>(count), "element") + what);
  };
  add(tensor.missing, " in no tile");
  add(tensor.repeated, " counted once more: several tiles hold the same place");
  add(tensor.unread, " not read");
  if (tensor.error) {
    const Error& error = *tensor.error;
    parts.push_back((error.place.file.empty() ? "" : error.place.file + ": ") + error.message);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

struct StatisticsLayout {
  std::size_t name = 0;  // columns of names; 0: names are too long and have lines of their own
  std::array<std::size_t, kStatisticsColumns> widths{};
  std::array<bool, kStatisticsColumns> shown{};
};

std::size_t columns_of(const StatisticsLayout& layout) {
  std::size_t sum = layout.name;
  for (std::size_t c = 0; c < kStatisticsColumns; ++c)
    sum += layout.shown[c] ? layout.widths[c] + 2 : 0;
  return sum;
}

// Leaves out at most so many columns; false where that is not enough.
bool make_fit(StatisticsLayout& layout, std::size_t spared, std::size_t width) {
  layout.shown.fill(true);
  for (std::size_t i = 0; i < spared && columns_of(layout) > width; ++i)
    layout.shown[kSpared[i]] = false;
  return columns_of(layout) <= width;
}

StatisticsLayout layout_of(std::span<const TensorStatistics> tensors,
                           const std::vector<StatisticsCells>& cells, std::size_t width) {
  StatisticsLayout layout;
  layout.name = std::string_view("tensor").size();
  for (const TensorStatistics& tensor : tensors)
    layout.name = std::max(layout.name, display_width(printable(tensor.fqn)));
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) {
    layout.widths[c] = std::string_view(kColumnTitles[c]).size();
    for (const StatisticsCells& row : cells)
      layout.widths[c] = std::max(layout.widths[c], display_width(row[c]));
  }
  if (make_fit(layout, kSparedBeside, width)) return layout;
  layout.name = 0;
  make_fit(layout, std::size(kSpared), width);
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

// "4 tensors · 1 with NaN · 1 not whole"
std::string sum_of(std::span<const TensorStatistics> tensors, const TextStyle& style) {
  const std::string separator = style.utf8 ? " · " : ", ";
  std::string text = plural(tensors.size(), "tensor");
  constexpr const char* kWords[] = {" not whole", " with NaN", " with infinities",
                                    " mostly denormal"};
  for (int kind = 0; kind < 4; ++kind) {
    auto count = std::count_if(tensors.begin(), tensors.end(),
                               [&](const auto& tensor) { return sickness(tensor) == kind; });
    if (count != 0)
      text += separator + human_count(static_cast<std::uint64_t>(count)) + kWords[kind];
  }
  return text;
}

}  // namespace

std::string statistics_to_text(std::span<const TensorStatistics> tensors, const TextStyle& style) {
  std::vector<StatisticsCells> cells;
  for (const TensorStatistics& tensor : tensors) cells.push_back(cells_of(tensor));
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  const StatisticsLayout layout = layout_of(tensors, cells, width);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sickness(tensors[a]) < sickness(tensors[b]);
  });
  StatisticsCells titles;
  for (std::size_t c = 0; c < kStatisticsColumns; ++c) titles[c] = kColumnTitles[c];
  std::string text = inked(style, Ink::kQuiet, line_of(layout, "tensor", titles)) + "\n";
  constexpr Ink kInks[] = {Ink::kRed, Ink::kRed, Ink::kGold, Ink::kGold, Ink::kPlain};
  for (std::size_t i : order) {
    const TensorStatistics& tensor = tensors[i];
    text +=
        inked(style, kInks[sickness(tensor)], line_of(layout, printable(tensor.fqn), cells[i])) +
        "\n";
    std::string why = printable(caveat(tensor));
    if (!why.empty()) text += wrapped(why, 4, width) + "\n";
  }
  return text + inked(style, Ink::kQuiet, sum_of(tensors, style)) + "\n";
}

}  // namespace shw
