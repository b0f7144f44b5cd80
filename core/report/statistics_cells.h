// Statistics of a tensor as text cells, shared by the terminal table and the HTML page.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/facts/values/tensor_statistics.h"

namespace shw {

// In the order of the columns.
enum StatisticsColumn { kDtype, kElements, kNan, kInf, kZero, kDenormal, kMin, kMax, kMean, kStd };
inline constexpr std::size_t kStatisticsColumns = 10;
inline constexpr const char* kStatisticsTitles[kStatisticsColumns] = {
    "dtype", "elements", "nan", "inf", "zero", "denormal", "min", "max", "mean", "std"};
using StatisticsCells = std::array<std::string, kStatisticsColumns>;

// "-" for a number that does not exist.
StatisticsCells statistics_cells(const TensorStatistics& tensor);
// Warning to show before the numbers; empty if they cover the whole tensor.
std::string statistics_caveat(const TensorStatistics& tensor);
// 0: not whole, 1: NaN, 2: infinities, 3: mostly denormal, 4: nothing unusual.
int anomaly_rank(const TensorStatistics& tensor);
// Indices of the tensors, the most severe first.
std::vector<std::size_t> order_by_anomaly(std::span<const TensorStatistics> tensors);

}  // namespace shw
