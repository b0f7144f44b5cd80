// How the logarithms of two moments follow each other (spec/failures.md P15b).
#pragma once

#include <cstdint>

namespace shw {

// Pearson's correlation of log|m| and half log v, over elements where both can be had.
struct LogCorrelation {
  std::int64_t count = 0;
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(double m, double v);
  double value() const;  // 0 where one of them does not vary
};

}  // namespace shw
