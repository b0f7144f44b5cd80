// What torch's own unpickler reads (torch/_weights_only_unpickler.py): the opcodes of protocol 2
// that torch.save writes, and no others. torch.distributed.checkpoint loads tensors with it since
// torch 2.4, entries that are no tensors with Python's.
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

// "MEMOIZE", of those that are none of them; empty where it is no opcode.
std::string_view name_of_opcode(std::uint8_t opcode);

// Names that it imports without being told to (torch.serialization.add_safe_globals), by
// torch 2.15. torch.load has it as its default since 2.6.
bool is_loaded_by_default(std::string_view module, std::string_view name);

}  // namespace shw
