// Re-encodes values of a pickle as opcodes without loss: known classes, shared objects, storages of
// tensors. Nothing is executed.
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
#include "core/formats/pickle/pickle.h"

namespace shw {

// Opcodes of protocol 2 without PROTO and STOP; memo numbers begin at 0. A storage is represented
// by kStorageHole and its number. For plain data without shared objects they equal plain_pickle().
struct CarriedPickle {
  std::string opcodes;
  std::vector<std::string> storage_keys;  // keys in the source archive, by number
};

// A marker that is not an opcode of Python; a 4-byte storage number follows.
inline constexpr char kStorageHole = '\x01';

// `pickle` and `base`: the arguments of decode_pickle(). kUnsupported names the value that cannot
// be encoded.
Result<CarriedPickle> carried_pickle(const PickleTree& tree, NodeId value, BytesView pickle,
                                     std::uint64_t base, std::size_t budget);

// All nodes of a value, each once.
std::vector<NodeId> reachable_nodes_in_order(const PickleTree& tree, NodeId value);

// True if a mutable or long object occurs more than once in the value.
bool contains_repeated_object(const PickleTree& tree, NodeId value);

// Opcodes renumbered for a pickle and an archive that already use `first_memo` memo numbers and
// `first_storage` storages.
struct RenumberedOpcodes {
  std::string opcodes;
  std::uint32_t memo = 0;  // number of memo numbers used
};
Result<RenumberedOpcodes> renumber_memo_entries(std::string_view opcodes, std::uint32_t first_memo,
                                                std::uint32_t first_storage);

}  // namespace shw
