#include "app/gui/input_queue.h"

#include <algorithm>
#include <set>

namespace shw {
namespace {

constexpr int kPress = 1, kRepeat = 2;  // GLFW_PRESS, GLFW_REPEAT

bool is_character(const InputEvent& event) {
  return event.key == 0 && event.button < 0;
}

// Arrow and page keys move in a list or map; they never focus a text field.
bool is_move_key(const KeyPress& press) {
  return press.key >= Key::kUp && press.key <= Key::kEnd;
}

// True for keys that may move the focus: all that a text field does not use itself.
bool may_move_focus(const KeyPress& press, bool reads_encoded_text) {
  if (press.key == Key::kNone || is_move_key(press)) return false;
  if (!reads_encoded_text || press.ctrl || press.alt) return true;
  const bool is_function = press.key >= Key::kF1 && press.key <= Key::kF12;
  return press.key == Key::kEnter || press.key == Key::kEscape || press.key == Key::kTab ||
         is_function;
}

}  // namespace

std::vector<KeyPress> InputQueue::take(const Target& target) {
  std::vector<KeyPress> presses;
  std::set<int> changed;
  since_command_ = std::min(since_command_ + 1, kFramesToFocus);
  while (!events_.empty()) {
    const InputEvent event = events_.front();
    const bool waits = since_command_ < kFramesToFocus;
    if (is_character(event)) {
      if (waits) break;
      events_.pop_front();
      target.character(event.character);
      continue;
    }
    if (event.button >= 0) {
      events_.pop_front();
      target.mouse(event);
      if (event.action == kPress) since_command_ = 0;
      continue;
    }
    const bool is_press = event.pressed.key != Key::kNone;
    if (waits && is_press && !is_move_key(event.pressed)) {
      if (event.action != kRepeat) break;
      // Drops repeats, so that commands of a held key do not pile up on a slow machine.
      events_.pop_front();
      if (!events_.empty() && is_character(events_.front())) events_.pop_front();
      continue;
    }
    if (!changed.insert(event.key).second && target.one_change_per_key) break;
    events_.pop_front();
    target.key(event);
    if (!is_press) continue;
    presses.push_back(event.pressed);
    if (!may_move_focus(event.pressed, target.reads_encoded_text)) continue;
    // Drops the key's own character: "/" must not appear in the field that it opens.
    if (!events_.empty() && is_character(events_.front())) {
      target.character(events_.front().character);
      events_.pop_front();
    }
    since_command_ = 0;
  }
  return presses;
}

}  // namespace shw
