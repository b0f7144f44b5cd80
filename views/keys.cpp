#include "views/keys.h"

#include <fmt/core.h>

#include <array>
#include <string_view>

namespace shw {
namespace {

struct NamedKey {
  Key key;
  std::string_view name;
};
constexpr std::array<NamedKey, 19> kNamed{{{Key::kUp, "Up"},
                                           {Key::kDown, "Down"},
                                           {Key::kLeft, "Left"},
                                           {Key::kRight, "Right"},
                                           {Key::kPageUp, "PageUp"},
                                           {Key::kPageDown, "PageDown"},
                                           {Key::kHome, "Home"},
                                           {Key::kEnd, "End"},
                                           {Key::kEnter, "Enter"},
                                           {Key::kEscape, "Esc"},
                                           {Key::kTab, "Tab"},
                                           {Key::kSpace, "Space"},
                                           {Key::kBackspace, "Backspace"},
                                           {Key::kDelete, "Delete"},
                                           {Key::kPlus, "Plus"},
                                           {Key::kMinus, "Minus"},
                                           {Key::kComma, "Comma"},
                                           {Key::kBracketLeft, "["},
                                           {Key::kBracketRight, "]"}}};

std::string name_of(Key key) {
  for (const NamedKey& named : kNamed) {
    if (named.key == key) return std::string(named.name);
  }
  if (key >= Key::kA && key <= Key::kZ)
    return {static_cast<char>('A' + static_cast<int>(key) - static_cast<int>(Key::kA))};
  if (key >= Key::k0 && key <= Key::k9)
    return {static_cast<char>('0' + static_cast<int>(key) - static_cast<int>(Key::k0))};
  if (key >= Key::kF1 && key <= Key::kF12)
    return fmt::format("F{}", static_cast<int>(key) - static_cast<int>(Key::kF1) + 1);
  return "";
}

}  // namespace

std::string to_text(KeyPress press) {
  std::string text;
  if (press.ctrl) text += "Ctrl+";
  if (press.alt) text += "Alt+";
  if (press.shift) text += "Shift+";
  return text + name_of(press.key);
}

KeyPress parse_key(const std::string& text) {
  for (int key = 1; key < static_cast<int>(Key::kCount); ++key) {
    for (int modifiers = 0; modifiers < 8; ++modifiers) {
      KeyPress press{static_cast<Key>(key), (modifiers & 1) != 0, (modifiers & 2) != 0,
                     (modifiers & 4) != 0};
      if (to_text(press) == text) return press;
    }
  }
  return {};
}

}  // namespace shw
