#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/verbs/run/run_steps.h"

namespace shw {

struct RunState {
  int row = 0;                                     // the step selected by keys
  bool reveal = false;                             // scrolls to that step
  std::weak_ptr<const verbs::RunSteps> asked_for;  // the list whose steps were requested
  std::optional<std::size_t> module;               // row of the matrix selected by keys
  bool reveal_module = false;                      // scrolls to that row
  bool by_change = false;                          // the most changed module comes first
  std::size_t newest_column = 0;                   // index of the newest visible step
};

}  // namespace shw
