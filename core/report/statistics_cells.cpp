#include "core/report/statistics_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

// Rounds an element's exact text to three digits.
std::string short_element(const std::string& text) {
  const auto number = parse_number<double>(text);
  if (!number) return text;
  if (std::isinf(*number)) return *number < 0 ? "-inf" : "inf";
  return short_number(*number);
}

}  // namespace

int anomaly_rank(const TensorStatistics& tensor) {
  const Statistics& s = tensor.statistics;
  if (!tensor.is_whole()) return 0;
  if (s.nan != 0) return 1;
  if (s.infinite != 0) return 2;
  return s.denormal * 2 > s.elements - s.zero ? 3 : 4;
}

StatisticsCells statistics_cells(const TensorStatistics& tensor) {
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

std::string statistics_caveat(const TensorStatistics& tensor) {
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

std::vector<std::size_t> order_by_anomaly(std::span<const TensorStatistics> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return anomaly_rank(tensors[a]) < anomaly_rank(tensors[b]);
  });
  return order;
}

}  // namespace shw
