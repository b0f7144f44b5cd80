#pragma once

#include <optional>
#include <string>

namespace shw {

struct BrowserState {
  bool open = false;
  bool compares = false;               // what is chosen is compared with, not opened
  bool wanted = false;                 // puts the keyboard into the field at the next frame
  std::string text;                    // "/runs/7/step_"
  std::optional<std::string> pending;  // what the field, which keeps its own text, is to hold
  std::string replaces;                // in its stead; what is typed behind it meanwhile stays
  std::optional<std::string> asked;    // the folder that was last listed
  int row = -1;                        // chosen; -1: what is typed
  std::optional<std::string> dropped;  // a path that is not opened yet
  bool drop_asked = false;             // what it is is being looked at
  bool reveal = false;                 // the chosen row was reached by a key: scroll to it
};

}  // namespace shw
