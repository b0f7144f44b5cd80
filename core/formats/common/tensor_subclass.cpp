#include "core/formats/common/tensor_subclass.h"

#include <algorithm>

#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// torchao nests two subclasses: the weight, and the packed layout inside it.
constexpr int kMostNestedSubclasses = 4;
constexpr std::size_t kMostWrapped = 64;

NodeId inside_parameter(const PickleTree& tree, NodeId node) {
  const auto given = tree.items(tree.arguments(node));
  return is_parameter_call(tree, node) && !given.empty() ? given[0] : node;
}

// The dict of attributes; kAbsent if `node` is not a call that creates a subclass.
NodeId subclass_state(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) != NodeKind::kReduce ||
      !tree.is_global(tree.callable(node), "torch._tensor", "_rebuild_from_type_v2"))
    return NodeId::kAbsent;
  const auto given = tree.items(tree.arguments(node));
  if (given.size() < 4 || !tree.is_global(given[0], "torch._utils", "_rebuild_wrapper_subclass"))
    return NodeId::kAbsent;
  const PickleGlobal* type = tree.global(given[1]);
  if (type == nullptr || type->name == "DTensor") return NodeId::kAbsent;
  NodeId state = given[3];
  if (tree.kind(state) == NodeKind::kTuple) {
    for (NodeId part : tree.items(state)) {
      if (tree.kind(part) == NodeKind::kDict) state = part;
    }
  }
  return tree.kind(state) == NodeKind::kDict ? state : NodeId::kAbsent;
}

void gather_wrapped(const PickleTree& tree, NodeId state, const std::string& prefix, int depth,
                    std::vector<WrappedTensor>& out) {
  const auto items = tree.items(state);
  for (std::size_t i = 0; i + 1 < items.size() && out.size() < kMostWrapped; i += 2) {
    const auto key = tree.text(items[i]);
    if (!key || key->empty()) continue;
    const NodeId value = inside_parameter(tree, items[i + 1]);
    const std::string name = prefix + std::string(key->substr(0, 256));
    const NodeId inner = subclass_state(tree, value);
    if (inner != NodeId::kAbsent && depth < kMostNestedSubclasses)
      gather_wrapped(tree, inner, name + ".", depth + 1, out);
    else if (is_tensor_call(tree, value))
      out.push_back({name, value});
  }
}

}  // namespace

TensorSubclass tensor_subclass(const PickleTree& tree, NodeId node) {
  TensorSubclass found;
  if (tree.kind(node) != NodeKind::kReduce) return found;
  found.call = inside_parameter(tree, node);
  const NodeId state = subclass_state(tree, found.call);
  if (state == NodeId::kAbsent) return found;
  const PickleGlobal& type = *tree.global(tree.items(tree.arguments(found.call))[1]);
  found.type = std::string(type.module) + "." + std::string(type.name);
  gather_wrapped(tree, state, "", 0, found.tensors);
  return found;
}

}  // namespace shw
