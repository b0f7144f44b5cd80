// A line of numbers about a tensor, in words: what the table at a terminal and the page share.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/facts/values/tensor_statistics.h"

namespace shw {

// In the order in which columns stand.
enum StatisticsColumn { kDtype, kElements, kNan, kInf, kZero, kDenormal, kMin, kMax, kMean, kStd };
inline constexpr std::size_t kStatisticsColumns = 10;
inline constexpr const char* kStatisticsTitles[kStatisticsColumns] = {
    "dtype", "elements", "nan", "inf", "zero", "denormal", "min", "max", "mean", "std"};
using StatisticsCells = std::array<std::string, kStatisticsColumns>;

// "-" where there is no such number.
StatisticsCells statistics_cells(const TensorStatistics& tensor);
// What a person has to know before the numbers; empty where they are the tensor's.
std::string statistics_caveat(const TensorStatistics& tensor);
// 0 is not whole, 1 has NaN, 2 infinities, 3 is mostly denormal, 4 is nothing odd.
int anomaly_rank(const TensorStatistics& tensor);
// Which of them stand first.
std::vector<std::size_t> gravest_first(std::span<const TensorStatistics> tensors);

}  // namespace shw
