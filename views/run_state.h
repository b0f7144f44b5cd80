#pragma once

#include <cstddef>
#include <optional>

namespace shw {

struct RunState {
  int row = 0;                        // the step that is chosen by keys
  bool reveal = false;                // scrolls to the chosen step
  const void* asked_for = nullptr;    // the list whose steps were asked for; compared only
  std::optional<std::size_t> module;  // row of the matrix that is chosen by keys
  bool reveal_module = false;         // scrolls to it
  bool by_change = false;             // the most changed module comes first
  std::size_t newest_column = 0;      // the newest step of the columns that fit
};

}  // namespace shw
