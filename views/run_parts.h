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

// The tensor of a row of the matrix: the one with NaN or infinite elements at that step, else the
// first; empty: none.
std::string tensor_to_open(const Snapshot& snapshot, const RunMatrix& matrix, std::size_t row,
                           std::size_t step);
// What a step's norm or NaN is called in a cell: "124.6", "12 NaN", "3 infinite".
std::string cell_number(const RunCell& cell);
// Modules by steps. Returns the cell that was clicked.
std::optional<StepChoice> draw_run_matrix(Frame& frame, UiState& state, Region region);
// The module above or below the chosen one, in the order of the rows on screen.
void move_module(const RunMatrix& matrix, RunState& state, int by);

}  // namespace shw
