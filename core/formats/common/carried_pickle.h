// Values of a pickle written back as opcodes with all that they are: classes that are known, what
// they hold twice, the storages of tensors. Nothing of it is run.
//
//   value = None | bool | int | float | str | bytes | bytearray | tuple | list | dict | set
//         | a known class or function, called or not, with its state (pickle_safety.h)
//         | a storage that a persistent id names
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/pickle.h"

namespace shw {

// Protocol 2 without PROTO and STOP. Memo numbers begin at 0; where a storage is named stands
// kStorageHole with its number. Of plain data that holds nothing twice these are the opcodes that
// plain_pickle() gives.
struct CarriedPickle {
  std::string opcodes;
  std::vector<std::string> storage_keys;  // of the archive it was in, by number
};

// No opcode of Python's: four bytes follow.
inline constexpr char kStorageHole = '\x01';

// `pickle` and `base` as they were decoded. kUnsupported: what is in the way, in words.
Result<CarriedPickle> carried_pickle(const PickleTree& tree, NodeId value, BytesView pickle,
                                     std::uint64_t base, std::size_t budget);

// Every node that a value is made of, once.
std::vector<NodeId> nodes_of(const PickleTree& tree, NodeId value);

// Whether something in it, that has an identity or is long, is there twice.
bool holds_twice(const PickleTree& tree, NodeId value);

// The same opcodes in the middle of a pickle that has used so many memo numbers, and in an archive
// that has so many storages.
struct PlacedOpcodes {
  std::string opcodes;
  std::uint32_t memo = 0;  // numbers that they take
};
Result<PlacedOpcodes> placed_opcodes(std::string_view opcodes, std::uint32_t first_memo,
                                     std::uint32_t first_storage);

}  // namespace shw
