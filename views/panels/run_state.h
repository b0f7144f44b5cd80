#pragma once

#include <cstddef>
#include <optional>

namespace shw {

struct RunState {
  int row = 0;                        // the step selected by keys
  bool reveal = false;                // scrolls to that step
  const void* asked_for = nullptr;    // the list whose steps were requested; only compared
  std::optional<std::size_t> module;  // row of the matrix selected by keys
  bool reveal_module = false;         // scrolls to that row
  bool by_change = false;             // the most changed module comes first
  std::size_t newest_column = 0;      // index of the newest visible step
};

}  // namespace shw
