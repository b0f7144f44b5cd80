// Values of a pickle written back as opcodes, where they are nothing but data.
#pragma once

#include <optional>
#include <string>

#include "core/formats/common/pickle.h"

namespace shw {

// The opcodes that make the value again (protocol 2, no memo, no PROTO and STOP), to be put into
// another pickle. Nothing where it holds anything but None, bool, int, float, bytes, str, tuple,
// list, dict, torch.Size and dtypes, is nested deeper than 100, or takes more than `budget` bytes:
// a value may refer to itself, or to one list a million times.
std::optional<std::string> plain_pickle(const PickleTree& tree, NodeId value, std::size_t budget);

// Where plain_pickle() gives nothing: the first class or value that is in the way, for people:
// "argparse.Namespace".
std::string non_plain_value_reason(const PickleTree& tree, NodeId value);

}  // namespace shw
