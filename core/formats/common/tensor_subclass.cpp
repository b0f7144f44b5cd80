#include "core/formats/common/tensor_subclass.h"

#include <span>
#include <string_view>

#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// torchao nests two subclasses: the weight, and the packed layout inside it.
constexpr int kMaxNestedSubclasses = 4;
constexpr std::size_t kMaxWrapped = 64;

NodeId unwrap_parameter_call(const PickleTree& tree, NodeId node) {
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

// _rebuild_wrapper_subclass(class, dtype, sizes, strides, offset, layout, device, requires_grad)
std::optional<Extents> wrapper_subclass_sizes(const PickleTree& tree, NodeId call) {
  const auto given = tree.items(tree.arguments(call));
  if (given.size() < 3) return std::nullopt;
  const auto arguments = tree.items(given[2]);
  if (arguments.size() < 3) return std::nullopt;
  NodeId sizes = arguments[2];
  if (tree.kind(sizes) == NodeKind::kReduce) {
    const auto inner = tree.items(tree.arguments(sizes));
    if (inner.size() != 1) return std::nullopt;
    sizes = inner[0];
  }
  if (tree.kind(sizes) != NodeKind::kTuple || tree.items(sizes).size() > kMaxDims)
    return std::nullopt;
  Extents told;
  for (NodeId item : tree.items(sizes)) {
    const auto size = tree.integer(item);
    if (!size) return std::nullopt;
    told.push_back(*size);
  }
  return told;
}

void collect_wrapped_tensors(const PickleTree& tree, NodeId state, const std::string& prefix,
                             int depth, std::vector<WrappedTensor>& out) {
  const auto items = tree.items(state);
  for (std::size_t i = 0; i + 1 < items.size() && out.size() < kMaxWrapped; i += 2) {
    const auto key = tree.text(items[i]);
    if (!key || key->empty()) continue;
    const NodeId value = unwrap_parameter_call(tree, items[i + 1]);
    const std::string name = prefix + std::string(key->substr(0, 256));
    const NodeId inner = subclass_state(tree, value);
    if (inner != NodeId::kAbsent && depth < kMaxNestedSubclasses)
      collect_wrapped_tensors(tree, inner, name + ".", depth + 1, out);
    else if (is_tensor_call(tree, value))
      out.push_back({name, value});
  }
}

// Torch's own tensors of several parts are named as torch's methods name the parts.
using PartNames = std::span<const std::string_view>;
constexpr std::string_view kCoo[] = {"indices", "values", "size"};
constexpr std::string_view kByRows[] = {"crow_indices", "col_indices", "values", "size"};
constexpr std::string_view kByColumns[] = {"ccol_indices", "row_indices", "values", "size"};
constexpr std::string_view kNested[] = {"values", "nested_sizes", "nested_strides",
                                        "storage_offsets"};
constexpr std::string_view kPerTensor[] = {"", "scale", "zero_point"};
constexpr std::string_view kPerChannel[] = {"", "scales", "zero_points", "axis"};

PartNames sparse_parts(std::string_view layout) {
  if (layout == "torch.sparse_coo") return kCoo;
  if (layout == "torch.sparse_csr" || layout == "torch.sparse_bsr") return kByRows;
  if (layout == "torch.sparse_csc" || layout == "torch.sparse_bsc") return kByColumns;
  return {};
}

// Adds the nodes that have a name: tensors, and other values apart.
void add_parts(const PickleTree& tree, std::span<const NodeId> nodes, PartNames names,
               TensorSubclass& out) {
  for (std::size_t i = 0; i < names.size() && i < nodes.size(); ++i) {
    if (names[i].empty()) continue;
    auto& list = is_tensor_call(tree, nodes[i]) ? out.tensors : out.values;
    list.push_back({std::string(names[i]), nodes[i]});
  }
}

// A sparse, nested or quantised tensor of torch; without tensors for any other call.
TensorSubclass composed_tensor(const PickleTree& tree, NodeId call) {
  TensorSubclass found{.call = call, .type = {}, .tensors = {}};
  const PickleGlobal* called = tree.global(tree.callable(call));
  const auto given = tree.items(tree.arguments(call));
  if (called == nullptr || called->module != "torch._utils") return found;
  if (called->name == "_rebuild_sparse_tensor" && given.size() == 2) {
    const auto layout = tree.items(tree.arguments(given[0]));
    const auto text = layout.size() == 1 ? tree.text(layout[0]) : std::nullopt;
    found.type = text.value_or("");
    add_parts(tree, tree.items(given[1]), sparse_parts(found.type), found);
  } else if (called->name == "_rebuild_nested_tensor" && given.size() == 4) {
    found.type = "torch.nested";
    add_parts(tree, given, kNested, found);
  } else if (called->name == "_rebuild_qtensor" && given.size() == 7) {
    const auto quantizer = tree.items(given[4]);
    const PickleGlobal* scheme = quantizer.empty() ? nullptr : tree.global(quantizer[0]);
    if (scheme == nullptr) return found;
    found.type = "torch." + scheme->name;
    found.tensors.push_back({"int_repr", call});
    const bool is_per_tensor = scheme->name == "per_tensor_affine";
    add_parts(tree, quantizer, is_per_tensor ? PartNames(kPerTensor) : PartNames(kPerChannel),
              found);
  }
  return found;
}

// The dict of attributes of a jagged tensor; kAbsent for any other call.
NodeId jagged_state(const PickleTree& tree, NodeId call) {
  const auto given = tree.items(tree.arguments(call));
  if (!tree.is_global(tree.callable(call), "torch._tensor", "_rebuild_from_type_v2") ||
      given.size() < 3 ||
      !tree.is_global(given[0], "torch.nested._internal.nested_tensor", "_rebuild_njt"))
    return NodeId::kAbsent;
  for (NodeId argument : tree.items(given[2])) {
    if (tree.kind(argument) == NodeKind::kDict) return argument;
  }
  return NodeId::kAbsent;
}

}  // namespace

TensorSubclass tensor_subclass(const PickleTree& tree, NodeId node) {
  TensorSubclass found;
  if (tree.kind(node) != NodeKind::kReduce) return found;
  found.call = unwrap_parameter_call(tree, node);
  if (const NodeId jagged = jagged_state(tree, found.call); jagged != NodeId::kAbsent) {
    found.type = "torch.jagged";
    collect_wrapped_tensors(tree, jagged, "", 0, found.tensors);
    return found;
  }
  if (auto composed = composed_tensor(tree, found.call); !composed.tensors.empty()) return composed;
  const NodeId state = subclass_state(tree, found.call);
  if (state == NodeId::kAbsent) return found;
  const PickleGlobal& type = *tree.global(tree.items(tree.arguments(found.call))[1]);
  found.type = std::string(type.module) + "." + std::string(type.name);
  found.stands_for = wrapper_subclass_sizes(tree, found.call);
  collect_wrapped_tensors(tree, state, "", 0, found.tensors);
  return found;
}

}  // namespace shw
