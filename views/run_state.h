#pragma once

#include <string>

namespace shw {

struct RunState {
  int row = 0;            // chosen by keys
  bool reveal = false;    // scrolls to the chosen row
  std::string asked_for;  // the run whose steps are being examined
};

}  // namespace shw
