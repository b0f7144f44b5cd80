#include "core/facts/states/moment_constraints.h"

#include <algorithm>
#include <cmath>

namespace shw {

double moment_constant(double beta1, double beta2) {
  double rest = 1 - beta1 * beta1 / beta2;
  if (!(beta2 > 0 && beta2 < 1) || rest <= 0) return std::numeric_limits<double>::infinity();
  return (1 - beta1) * (1 - beta1) / ((1 - beta2) * rest);
}

double moment_constant_any_beta1(double beta2) {
  return beta2 > 0 && beta2 < 1 ? 1 / (1 - beta2) : std::numeric_limits<double>::infinity();
}

void MomentCount::add(double m, double v, double constant, double slack) {
  // Below this the square of the gradient underflows float.
  constexpr double kMinSquarableGradient = 1e-15;
  if (!std::isfinite(m) || !std::isfinite(v)) return;
  ++looked_at;
  squares += m * m;
  seconds += constant * v;
  if (v < 0) {
    ++negative;
  } else if (v == 0) {
    if (std::abs(m) > kMinSquarableGradient) ++without_root;
  } else if (std::abs(m) > kMinSquarableGradient) {
    worst = std::max(worst, m * m / v);
    if (m * m > constant * v * (1 + slack)) ++above;
  }
}

void MomentCount::join(const MomentCount& other) {
  looked_at += other.looked_at;
  above += other.above;
  negative += other.negative;
  without_root += other.without_root;
  worst = std::max(worst, other.worst);
  squares += other.squares;
  seconds += other.seconds;
}

void LogCorrelation::add(double m, double v) {
  if (m == 0 || !(v > 0) || !std::isfinite(m) || !std::isfinite(v)) return;
  double x = std::log(std::abs(m)), y = 0.5 * std::log(v);
  ++count;
  // Welford's update, because plain sums of similar logarithms would cancel.
  auto n = static_cast<double>(count);
  double dx = x - mean_x, dy = y - mean_y;
  mean_x += dx / n;
  mean_y += dy / n;
  xx += dx * (x - mean_x);
  yy += dy * (y - mean_y);
  xy += dx * (y - mean_y);
}

// The update of Chan, Golub and LeVeque for two parts.
void LogCorrelation::join(const LogCorrelation& other) {
  if (other.count == 0) return;
  const auto n = static_cast<double>(count), m = static_cast<double>(other.count);
  const double dx = other.mean_x - mean_x, dy = other.mean_y - mean_y;
  const double both = n * m / (n + m);
  xx += other.xx + dx * dx * both;
  yy += other.yy + dy * dy * both;
  xy += other.xy + dx * dy * both;
  mean_x += dx * m / (n + m);
  mean_y += dy * m / (n + m);
  count += other.count;
}

double LogCorrelation::value() const {
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace shw
