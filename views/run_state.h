#pragma once

namespace shw {

struct RunState {
  int row = 0;                      // chosen by keys
  bool reveal = false;              // scrolls to the chosen row
  const void* asked_for = nullptr;  // the list whose steps were asked for; compared only
};

}  // namespace shw
