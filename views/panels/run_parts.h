// The parts of the view of a run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "views/parts.h"

namespace shw {

// A step to open, and the tensor to select there.
struct StepChoice {
  std::size_t step = 0;
  std::string tensor;  // may be empty
  bool in_new_tab = false;
};

// The tensor to open for a row of the matrix: one with NaN or infinite elements at that step,
// otherwise the first; empty: none.
std::string tensor_to_open(const Snapshot& snapshot, const RunMatrix& matrix, std::size_t row,
                           std::size_t step);
// Text of a cell: "124.6", "12 NaN", "3 infinite".
std::string cell_number(const RunCell& cell);
// Draws modules by steps. Returns the clicked cell.
std::optional<StepChoice> draw_run_matrix(Frame& frame, UiState& state, Region region);
// Selects the module above or below, in the order on the screen.
void move_module(const RunMatrix& matrix, RunState& state, int by);

}  // namespace shw
