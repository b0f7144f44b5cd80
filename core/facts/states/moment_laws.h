// What two running means of one gradient can never be to each other (spec/failures.md P15), and how
// their logarithms follow each other (P15b): numbers that are counted in pieces and joined.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace shw {

// exp_avg^2 <= C * exp_avg_sq for any gradients and any number of steps (Cauchy and Schwarz).
// Infinite where beta1^2 >= beta2.
double moment_constant(double beta1, double beta2);
// The same where beta1 was any number up to beta2 at any step, so that a warm-up or a cycle of it
// leads no further: the mean's weight k steps back is at most beta2^k, and all of them are at most
// 1 together, so exp_avg^2 <= exp_avg_sq / (1 - beta2).
double moment_constant_of_any(double beta2);

struct MomentCount {
  std::int64_t looked_at = 0;
  std::int64_t above = 0;           // m^2 > C * v * (1 + slack)
  std::int64_t negative = 0;        // v < 0
  std::int64_t without_root = 0;    // v == 0 and m far from 0
  double worst = 0;                 // the largest m^2 / v
  double squares = 0, seconds = 0;  // the sums of m^2 and of C * v
  // Rows of one tensor in another order keep both sums: then m and v follow no common rule.
  bool is_above_as_a_whole(double widened = 1) const { return squares > seconds * widened * 1.05; }
  void add(double m, double v, double constant, double slack);
  void join(const MomentCount& other);
};

// Pearson's correlation of log|m| and half log v, over elements where both can be had.
struct LogCorrelation {
  std::int64_t count = 0;
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(double m, double v);
  void join(const LogCorrelation& other);
  double value() const;  // 0 where one of them does not vary
};

}  // namespace shw
