// Invariants between the two running means of one gradient, and the correlation of their
// logarithms; sums that can be computed in parts and merged.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace shw {

// The C in exp_avg^2 <= C * exp_avg_sq, which holds for any gradients and steps (Cauchy-Schwarz).
// Infinite if beta1^2 >= beta2.
double moment_constant(double beta1, double beta2);
// 1 / (1 - beta2): the bound of exp_avg^2 / exp_avg_sq when beta1 varied between 0 and beta2
// (warm-up, cycles), because the weight of the gradient k steps back is at most beta2^k and all
// weights sum to at most 1. Infinite if beta2 is not between 0 and 1.
double moment_constant_any_beta1(double beta2);

struct MomentCount {
  std::int64_t looked_at = 0;
  std::int64_t above = 0;           // elements with m^2 > C * v * (1 + slack)
  std::int64_t negative = 0;        // elements with v < 0
  std::int64_t without_root = 0;    // elements with v == 0 and m far from 0
  double worst = 0;                 // maximum of m^2 / v
  double squares = 0, seconds = 0;  // sums of m^2 and of C * v
  // Reordered rows keep both sums: true only if m and v follow no common rule.
  bool exceeds_bound_in_total(double widened = 1) const {
    return squares > seconds * widened * 1.05;
  }
  void add(double m, double v, double constant, double slack);
  void join(const MomentCount& other);
};

// Pearson's correlation of log|m| and half log v over elements where both exist.
struct LogCorrelation {
  std::int64_t count = 0;
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  void add(double m, double v);
  void join(const LogCorrelation& other);
  double value() const;  // 0 if one of them is constant
};

}  // namespace shw
