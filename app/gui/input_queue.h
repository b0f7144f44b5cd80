// Queues keys, characters and mouse buttons in the order in which they come. A
// command key or a click takes effect one frame later: Ctrl+F focuses the search
// field in the next frame. Later input waits, so that no character is lost or
// taken for a command, however slow the frames are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "views/keys.h"

namespace shw {

struct InputEvent {
  // GLFW event: a key, a mouse button if `button` is not negative, or a character if `key` is 0
  int key = 0, scancode = 0, action = 0, mods = 0;
  unsigned character = 0;
  KeyPress pressed;  // what views receive; kNone: nothing
  int button = -1;
};

class InputQueue {
 public:
  struct Target {
    std::function<void(const InputEvent&)> key;    // forwards to imgui
    std::function<void(unsigned)> character;       // forwards to imgui
    std::function<void(const InputEvent&)> mouse;  // forwards to imgui
    bool reads_encoded_text = false;               // a text field has the focus
    bool one_change_per_key = false;               // imgui before 1.87
  };

  void add(InputEvent event) { events_.push_back(event); }
  // Call once per frame: forwards the input that may be forwarded, and returns key presses for
  // views.
  std::vector<KeyPress> take(const Target& target);
  bool empty() const { return events_.empty(); }

 private:
  // Frames between a command key or a click and text input into the field that it focused.
  static constexpr int kFramesToFocus = 2;

  std::deque<InputEvent> events_;
  int since_command_ = kFramesToFocus;  // in frames
};

}  // namespace shw
