#include "core/formats/pickle/nested_storage.h"

#include "core/formats/pickle/pickle.h"

namespace shw {

bool is_nested_storage(const PickleTree& tree, NodeId node) {
  return tree.is_global(tree.callable(node), "torch.storage", "_load_from_bytes");
}

// Python unpickles the five pickles in front of the bytes one after the other.
bool names_only_a_storage(BytesView nested) {
  constexpr int kPickles = 5;
  std::uint64_t at = 0;
  std::size_t names = 0;
  for (int i = 0; i < kPickles && at < nested.size(); ++i) {
    const auto tree = decode_pickle(nested.subspan(at), "");
    if (!tree || tree->unusual_call_at()) return false;
    for (const PickleGlobal& global : tree->globals()) {
      const bool is_class = global.module.starts_with("torch") && global.name.ends_with("Storage");
      if (!is_class || global.called_at || ++names > 1) return false;
    }
    at += tree->end();
  }
  return true;
}

bool are_nested_storages_plain(const PickleTree& tree) {
  for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
    const NodeId node{i};
    if (!is_nested_storage(tree, node)) continue;
    const auto arguments = tree.items(tree.arguments(node));
    const bool is_here = arguments.size() == 1 && tree.kind(arguments[0]) == NodeKind::kBytes;
    if (!is_here || !names_only_a_storage(*tree.bytes(arguments[0]))) return false;
  }
  return true;
}

}  // namespace shw
