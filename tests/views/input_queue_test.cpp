// Keys and characters reach the field that a key opened, in order.
#include "app/gui/input_queue.h"

#include <doctest/doctest.h>

#include <string>

using namespace shw;

namespace {

// A window with a search field that Ctrl+F or a click focuses; imgui gives it the focus in the next
// frame.
struct SearchWindow {
  InputQueue queue;
  std::string field, shortcuts;
  int focus_in = -1;  // frames until the field has the focus; below 0: not asked for

  void press(Key key, bool ctrl = false) {
    queue.add({static_cast<int>(key) + 64, 0, 1, 0, 0, {key, ctrl, false, false}});
  }
  void release(Key key) { queue.add({static_cast<int>(key) + 64, 0, 0, 0, 0, {}}); }
  void type(char letter) {
    const Key key = static_cast<Key>(static_cast<int>(Key::kA) + letter - 'a');
    press(key);
    InputEvent character;
    character.character = static_cast<unsigned>(letter);
    queue.add(character);
    release(key);
  }
  void type(const std::string& text) {
    for (char letter : text) type(letter);
  }
  void click() {
    InputEvent button;
    button.button = 0;
    for (int action : {1, 0}) {
      button.action = action;
      queue.add(button);
    }
  }
  void frame() {
    const bool focused = focus_in == 0;
    InputQueue::Target target;
    target.reads_encoded_text = focused;
    target.key = [](const InputEvent&) {};
    target.character = [&](unsigned character) {
      if (focused) field += static_cast<char>(character);
    };
    target.mouse = [&](const InputEvent& event) {
      if (event.action == 1) focus_in = 1;
    };
    const std::vector<KeyPress> presses = queue.take(target);
    if (focus_in > 0) --focus_in;
    for (const KeyPress& press : presses) {
      if (press == KeyPress{Key::kF, true, false, false}) focus_in = focused ? 0 : 1;
      if (!press.ctrl && !focused && press.key >= Key::kA && press.key <= Key::kZ)
        shortcuts += to_text(press);
    }
  }
};

}  // namespace

TEST_CASE("typed text reaches the field that Ctrl+F opened, all in one frame or one a frame") {
  for (bool at_once : {true, false}) {
    CAPTURE(at_once);
    SearchWindow window;
    window.press(Key::kF, true);
    if (!at_once) window.frame();
    for (char letter : std::string("layers")) {
      window.type(letter);
      if (!at_once) window.frame();
    }
    for (int i = 0; i < 12; ++i) window.frame();
    CHECK(window.field == "layers");
    CHECK(window.shortcuts == "");
    CHECK(window.queue.empty());
  }
}

TEST_CASE("input queue: keys that follow a click at once reach the field that it focused") {
  SearchWindow window;
  window.type("ab");  // before the click: shortcuts
  window.click();
  window.press(Key::kA, true);
  window.type("layers");
  for (int i = 0; i < 12; ++i) window.frame();
  CHECK(window.field == "layers");
  CHECK(window.shortcuts == "AB");
  CHECK(window.queue.empty());
}

TEST_CASE("letters without a field are shortcuts, each once and in order") {
  SearchWindow window;
  window.type("abc");
  for (int i = 0; i < 12; ++i) window.frame();
  CHECK(window.shortcuts == "ABC");
  CHECK(window.field == "");
}

TEST_CASE("the character of a key that opens a field is not in it") {
  SearchWindow window;
  InputEvent slash;
  slash.character = 'f';
  window.press(Key::kF, true);
  window.queue.add(slash);
  window.type("x");
  for (int i = 0; i < 12; ++i) window.frame();
  CHECK(window.field == "x");
}

TEST_CASE("a command key that is held down on slow frames does not pile up, arrows pass") {
  SearchWindow window;
  window.press(Key::kN);
  for (int i = 0; i < 100; ++i)
    window.queue.add({1000, 0, 2, 0, 0, {Key::kN, false, false, false}});
  for (int i = 0; i < 100; ++i)
    window.queue.add({1001, 0, 2, 0, 0, {Key::kDown, false, false, false}});
  window.frame();
  CHECK(window.queue.empty());
}
