#include "core/formats/common/nested_storage.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/pickle/pickle.h"

namespace shw {
namespace {

constexpr PickleLimits kNestedPickleLimits{1u << 16, 100, 1u << 10};

bool is_nested_load(const PickleTree& tree, NodeId node) {
  return tree.is_global(node, "torch.storage", "_load_from_bytes");
}

bool is_container(NodeKind kind) {
  return kind == NodeKind::kTuple || kind == NodeKind::kList || kind == NodeKind::kDict ||
         kind == NodeKind::kSet;
}

// True if the function is handed to another one, which may call it with anything.
bool is_passed_to_another_call(const PickleTree& tree, NodeId node) {
  const auto items = is_container(tree.kind(node)) ? tree.items(node) : std::span<const NodeId>{};
  return std::any_of(items.begin(), items.end(),
                     [&](NodeId item) { return is_nested_load(tree, item); });
}

}  // namespace

bool is_nested_storage(const PickleTree& tree, NodeId node) {
  return is_nested_load(tree, tree.callable(node));
}

// Python unpickles the five pickles in front of the bytes one after the other.
bool names_only_a_storage(BytesView nested) {
  constexpr int kPickles = 5;
  if (!is_legacy_torch_file(nested)) return false;
  std::uint64_t at = 0;
  std::size_t names = 0;
  for (int i = 0; i < kPickles && at < nested.size(); ++i) {
    const auto tree = decode_pickle(nested.subspan(at), "", 0, kNestedPickleLimits);
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
  std::set<std::pair<const std::byte*, std::size_t>> plain;  // one pickle may name them again
  for (std::uint32_t i = 0; i < tree.node_count(); ++i) {
    const NodeId node{i};
    if (is_passed_to_another_call(tree, node)) return false;
    if (!is_nested_storage(tree, node)) continue;
    const auto arguments = tree.items(tree.arguments(node));
    const bool is_here = arguments.size() == 1 && tree.kind(arguments[0]) == NodeKind::kBytes;
    if (!is_here) return false;
    const BytesView nested = *tree.bytes(arguments[0]);
    if (!plain.emplace(nested.data(), nested.size()).second) continue;
    if (!names_only_a_storage(nested)) return false;
  }
  return true;
}

}  // namespace shw
