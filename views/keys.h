// Key presses for views. imgui 1.86 knows 22 keys and loses those pressed and released between two
// frames, so the window queues its own.
#pragma once

#include <cstdint>
#include <string>

namespace shw {

enum class Key : std::uint8_t {
  kNone,
  kA,
  kB,
  kC,
  kD,
  kE,
  kF,
  kG,
  kH,
  kI,
  kJ,
  kK,
  kL,
  kM,
  kN,
  kO,
  kP,
  kQ,
  kR,
  kS,
  kT,
  kU,
  kV,
  kW,
  kX,
  kY,
  kZ,
  k0,
  k1,
  k2,
  k3,
  k4,
  k5,
  k6,
  k7,
  k8,
  k9,
  kF1,
  kF2,
  kF3,
  kF4,
  kF5,
  kF6,
  kF7,
  kF8,
  kF9,
  kF10,
  kF11,
  kF12,
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kTab,
  kSpace,
  kBackspace,
  kDelete,
  kPlus,
  kMinus,
  kComma,
  kBracketLeft,
  kBracketRight,
  kCount
};

struct KeyPress {
  Key key = Key::kNone;
  bool ctrl = false, shift = false, alt = false;
  friend bool operator==(const KeyPress&, const KeyPress&) = default;
};

std::string to_text(KeyPress press);          // "Ctrl+Shift+P"
KeyPress parse_key(const std::string& text);  // kNone if invalid

}  // namespace shw
