#include "app/gui/key_codes.h"

#include <GLFW/glfw3.h>
#include <utility>

namespace shw {

Key key_of(int key, const char* printed) {
  constexpr std::pair<int, Key> kOthers[] = {{GLFW_KEY_UP, Key::kUp},
                                             {GLFW_KEY_DOWN, Key::kDown},
                                             {GLFW_KEY_LEFT, Key::kLeft},
                                             {GLFW_KEY_RIGHT, Key::kRight},
                                             {GLFW_KEY_PAGE_UP, Key::kPageUp},
                                             {GLFW_KEY_PAGE_DOWN, Key::kPageDown},
                                             {GLFW_KEY_HOME, Key::kHome},
                                             {GLFW_KEY_END, Key::kEnd},
                                             {GLFW_KEY_ENTER, Key::kEnter},
                                             {GLFW_KEY_KP_ENTER, Key::kEnter},
                                             {GLFW_KEY_ESCAPE, Key::kEscape},
                                             {GLFW_KEY_TAB, Key::kTab},
                                             {GLFW_KEY_SPACE, Key::kSpace},
                                             {GLFW_KEY_BACKSPACE, Key::kBackspace},
                                             {GLFW_KEY_DELETE, Key::kDelete},
                                             {GLFW_KEY_KP_ADD, Key::kPlus},
                                             {GLFW_KEY_EQUAL, Key::kPlus},
                                             {GLFW_KEY_KP_SUBTRACT, Key::kMinus},
                                             {GLFW_KEY_MINUS, Key::kMinus},
                                             {GLFW_KEY_COMMA, Key::kComma},
                                             {GLFW_KEY_LEFT_BRACKET, Key::kBracketLeft},
                                             {GLFW_KEY_RIGHT_BRACKET, Key::kBracketRight}};
  for (auto [from, to] : kOthers) {
    if (from == key) return to;
  }
  auto after = [](Key first, int step) { return static_cast<Key>(static_cast<int>(first) + step); };
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) return after(Key::kF1, key - GLFW_KEY_F1);
  const char letter = printed != nullptr && printed[0] != 0 && printed[1] == 0 ? printed[0] : '\0';
  if (letter >= 'a' && letter <= 'z') return after(Key::kA, letter - 'a');
  if (letter >= '0' && letter <= '9') return after(Key::k0, letter - '0');
  if (key >= GLFW_KEY_0 && key <= GLFW_KEY_9) return after(Key::k0, key - GLFW_KEY_0);
  if (letter == '\0' && key >= GLFW_KEY_A && key <= GLFW_KEY_Z)
    return after(Key::kA, key - GLFW_KEY_A);
  return Key::kNone;
}

}  // namespace shw
