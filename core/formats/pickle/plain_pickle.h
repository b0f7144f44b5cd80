// Re-encodes values of a pickle as opcodes, if they are plain data.
#pragma once

#include <optional>
#include <string>

#include "core/formats/pickle/pickle.h"

namespace shw {

// Opcodes that create the value again (protocol 2, no memo, no PROTO and STOP), for use in another
// pickle. nullopt if it contains anything except None, bool, int, float, bytes, str, tuple, list,
// dict, torch.Size and dtypes, is nested deeper than 100, or takes more than `budget` bytes: a
// value may refer to itself, or to one list a million times.
std::optional<std::string> plain_pickle(const PickleTree& tree, NodeId value, std::size_t budget);

// The first class or value for which plain_pickle() fails, for people: "argparse.Namespace".
std::string non_plain_value_reason(const PickleTree& tree, NodeId value);

}  // namespace shw
