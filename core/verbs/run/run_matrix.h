// The numbers of a run as a matrix: a row per module, a column per step. Computed once per counted
// step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/verbs/run/run_numbers.h"

namespace shw::verbs {

struct RunCell {
  enum class State : std::uint8_t { kNotCounted, kAbsent, kCounted, kFailed };
  State state = State::kNotCounted;
  bool is_whole = true;     // every element of the module was read
  bool has_change = false;  // true: the previous step was counted, with the same number of elements
  bool begins = false;      // true: the first step of the row with a NaN or infinite element
  float change = 0;         // change of the norm since the previous step: 0.1 is 10 %
  double norm = 0;          // L2 norm of the finite elements
  std::uint64_t nan = 0, infinite = 0;
  bool is_anomalous() const { return nan != 0 || infinite != 0; }
};

struct RunMatrixRow {
  std::string name;                     // "layers.5.mlp"; the first row: "all modules"
  std::optional<std::uint32_t> module;  // index in RunNumbers::modules; nullopt: all modules
  float most_change = 0;                // largest magnitude of its changes
};

// The first step with NaN, or otherwise with infinite elements.
struct FirstAnomaly {
  std::size_t step = 0;  // index in RunSteps::steps
  std::size_t row = 0;   // the row with most such elements at that step
  std::size_t rows = 0;  // number of rows with such elements at that step, without "all modules"
  bool is_nan = true;
  bool is_proved = false;  // all older steps were read completely
};

struct RunMatrix {
  std::vector<RunMatrixRow> rows;       // "all modules", then by name
  std::vector<std::size_t> by_change;   // row indices, the most changed first
  std::vector<std::string> step_names;  // by step, without their common prefix
  std::vector<RunCell> cells;           // row-major, in the order of RunSteps::steps
  // Numbers of steps; `counted` includes the other two.
  std::size_t counted = 0, failed = 0, incomplete = 0;
  std::uint64_t bytes_left = 0;  // total size of files of steps that are not counted
  std::optional<FirstAnomaly> first_anomaly;
  std::size_t steps() const { return step_names.size(); }
  const RunCell& cell(std::size_t row, std::size_t step) const {
    return cells[row * steps() + step];
  }
};

// Without rows if nothing was counted.
RunMatrix make_run_matrix(const RunSteps& run, const RunNumbers* numbers);
// Text about the first NaN, "First NaN at step_300: layers.5.mlp, 12 elements", or that there is
// none; and about unread steps.
std::string first_anomaly_text(const RunSteps& run, const RunMatrix& matrix);

}  // namespace shw::verbs
