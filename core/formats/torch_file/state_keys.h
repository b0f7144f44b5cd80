// Keys of the mappings in a pickled state dict, as texts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/pickle/pickle_tree.h"

namespace shw {

// str(key) for the types of keys that programs use.
std::optional<std::string> key_text(const PickleTree& tree, NodeId key);

// Keys that get a name only at the root, where torch.distributed.checkpoint uses str(key).
bool is_float_or_tuple_key(const PickleTree& tree, NodeId key);
// key_text, or repr() of a rare key.
std::optional<std::string> root_key_text(const PickleTree& tree, NodeId key);

struct MappingKey {
  std::string text;
  NodeKind kind;
  bool is_superseded = false;  // the key comes again: the last value counts, as in Python
  bool is_ambiguous = false;   // a key of another kind has this text: 1 and "1"
};

// Sets is_ambiguous where keys of different kinds have one text, and is_superseded where a later
// key is equal. `keys`: all keys of one mapping, in order.
void flag_repeated_keys(std::vector<MappingKey>& keys);

}  // namespace shw
