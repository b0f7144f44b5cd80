// Opcodes that torch's own unpickler supports (torch/_weights_only_unpickler.py): those of protocol
// 2 that torch.save writes. torch.distributed.checkpoint loads tensors with it since torch 2.4, but
// non-tensor entries with Python's unpickler.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shw {

inline constexpr std::string_view kWeightsOnlyOpcodes =
    "c"               // GLOBAL
    "\x81Rb"          // NEWOBJ REDUCE BUILD
    "aesu"            // APPEND APPENDS SETITEM SETITEMS
    "(t\x85\x86\x87"  // MARK TUPLE TUPLE1 TUPLE2 TUPLE3
    "N\x89\x88"       // NONE NEWFALSE NEWTRUE
    ")]}\x8f"         // EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET
    "JKMG"            // BININT BININT1 BININT2 BINFLOAT
    "XUQ"             // BINUNICODE SHORT_BINSTRING BINPERSID
    "hjqr"            // BINGET LONG_BINGET BINPUT LONG_BINPUT
    "\x8a\x80.";      // LONG1 PROTO STOP

inline constexpr std::array<bool, 256> kIsWeightsOnly = [] {
  std::array<bool, 256> is{};
  for (char opcode : kWeightsOnlyOpcodes) is[static_cast<std::uint8_t>(opcode)] = true;
  return is;
}();

// The name of an opcode that torch's unpickler lacks ("MEMOIZE"); empty for unknown opcodes.
std::string_view name_of_opcode(std::uint8_t opcode);

// True for names that torch 2.15 imports without torch.serialization.add_safe_globals. weights_only
// is the default of torch.load since 2.6.
bool is_weights_only_safe(std::string_view module, std::string_view name);

}  // namespace shw
