// Keys and characters of a window, in the order in which they were typed. What a command key does
// is seen a frame later: Ctrl+F gives the search field the focus in the next one. What was typed
// behind it waits for that, so that no letter is lost or taken for a command however slow the
// frames are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "views/keys.h"

namespace shw {

struct InputEvent {
  // Of GLFW: a key event, or a character where `key` is 0.
  int key = 0, scancode = 0, action = 0, mods = 0;
  unsigned character = 0;
  KeyPress pressed;  // what the views are told; kNone: nothing
};

class InputQueue {
 public:
  struct Target {
    std::function<void(const InputEvent&)> key;  // to imgui
    std::function<void(unsigned)> character;     // to imgui
    bool takes_text = false;                     // a text field has the focus now
    bool one_change_a_key = false;               // imgui before 1.87
  };

  void add(InputEvent event) { events_.push_back(event); }
  // Once a frame: hands on what may be handed on now. Returns the presses for the views.
  std::vector<KeyPress> take(const Target& target);
  bool empty() const { return events_.empty(); }

 private:
  // Frames after a command key before a field that it focused takes text.
  static constexpr int kFramesToFocus = 2;

  std::deque<InputEvent> events_;
  int since_command_ = kFramesToFocus;  // frames
};

}  // namespace shw
