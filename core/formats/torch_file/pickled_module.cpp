#include "core/formats/torch_file/pickled_module.h"

#include <set>

#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle_names.h"

namespace shw {
namespace {

// Depth limit: real models are nested some dozens deep, and torch's own recursion fails at 1000.
constexpr int kDeepestModule = 128;

NodeId pickled_mapping(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) == NodeKind::kDict) return node;
  return tree.kind(tree.contents(node)) == NodeKind::kDict ? tree.contents(node) : NodeId::kAbsent;
}

bool is_pickled_object(const PickleTree& tree, NodeId node) {
  return tree.kind(node) == NodeKind::kObject || tree.kind(node) == NodeKind::kReduce;
}

// The dict, list or tuple with the values of an object of TorchScript, of a typed list or dict, or
// of a plain one; kAbsent for other nodes.
NodeId torchscript_container(const PickleTree& tree, NodeId node) {
  NodeId held = node;
  if (is_script_object(tree, node)) {
    held = tree.state(node);
  } else if (const PickleGlobal* named = tree.global(tree.callable(node));
             named != nullptr && named->module == "torch.jit._pickle") {
    const auto given = tree.items(tree.arguments(node));
    held = given.empty() ? NodeId::kAbsent : given[0];
  }
  const NodeKind kind = tree.kind(held);
  const bool has_values =
      kind == NodeKind::kDict || kind == NodeKind::kList || kind == NodeKind::kTuple;
  return has_values ? held : NodeId::kAbsent;
}

class ModuleWalk {
 public:
  ModuleWalk(const PickleTree& tree, const std::string& file)
      : tree_(tree),
        file_(file),
        visits_left_(4 * tree.node_count() + 64),
        text_left_(16 * tree.end() + (1 << 20)) {}

  Result<ModuleTensors> run(NodeId module) {
    SHW_CHECK(visit(module, "", 0));
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> entangled(NodeId node) const {
    return fail(ErrorKind::kUnsupported, "the module structure is too complex to read",
                {file_, tree_.at(node)});
  }

  Status visit(NodeId module, const std::string& prefix, int depth) {
    if (depth > kDeepestModule) return entangled(module);
    if (is_script_object(tree_, module)) return visit_script(module, prefix, depth);
    SHW_CHECK(read_tensors(tree_.attribute(module, "_parameters"), prefix, {}));
    SHW_CHECK(
        read_tensors(tree_.attribute(module, "_buffers"), prefix, non_persistent_buffers(module)));
    SHW_CHECK(read_tensors(tree_.attributes(module), prefix, {}));
    const auto items = tree_.items(pickled_mapping(tree_, tree_.attribute(module, "_modules")));
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      SHW_TRY(std::string name, name_of(prefix, items[i]));
      if (is_pickled_module(tree_, items[i + 1]))
        SHW_CHECK(visit(items[i + 1], name + ".", depth + 1));
    }
    return {};
  }

  // The values in the state of an object, or in a list, tuple or dict.
  Status visit_script(NodeId node, const std::string& prefix, int depth) {
    if (depth > kDeepestModule) return entangled(node);
    const NodeId held = torchscript_container(tree_, node);
    const auto items = tree_.items(held);
    const bool is_dict = tree_.kind(held) == NodeKind::kDict;
    for (std::size_t i = 0; i + (is_dict ? 1 : 0) < items.size(); i += is_dict ? 2 : 1) {
      if (visits_left_-- == 0) return entangled(node);
      const NodeId value = items[is_dict ? i + 1 : i];
      const bool is_tensor = is_tensor_call(tree_, value);
      if (!is_tensor && torchscript_container(tree_, value) == NodeId::kAbsent) continue;
      const auto number = is_dict ? tree_.integer(items[i]) : static_cast<std::int64_t>(i);
      SHW_TRY(std::string name, number ? joined_name(prefix, std::to_string(*number), node)
                                       : name_of(prefix, items[i]));
      if (is_tensor)
        out_.tensors.emplace_back(std::move(name), value);
      else
        SHW_CHECK(visit_script(value, name + ".", depth + 1));
    }
    return {};
  }

  Status read_tensors(NodeId mapping, const std::string& prefix,
                      const std::set<std::string_view>& left_out) {
    const auto items = tree_.items(pickled_mapping(tree_, mapping));
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (visits_left_-- == 0) return entangled(items[i]);
      if (!is_tensor_call(tree_, items[i + 1])) continue;
      SHW_TRY(std::string name, name_of(prefix, items[i]));
      if (left_out.contains(tree_.text(items[i]).value_or("")))
        out_.left_out.push_back(std::move(name));
      else
        out_.tensors.emplace_back(std::move(name), items[i + 1]);
    }
    return {};
  }

  Result<std::string> name_of(const std::string& prefix, NodeId key) {
    const auto text = tree_.text(key);
    if (!text)
      return fail(ErrorKind::kUnsupported, "a submodule's name is not text",
                  {file_, tree_.at(key)});
    return joined_name(prefix, *text, key);
  }

  Result<std::string> joined_name(const std::string& prefix, std::string_view part, NodeId node) {
    const std::size_t length = prefix.size() + part.size();
    if (visits_left_-- == 0 || length > text_left_) return entangled(node);
    text_left_ -= length;
    return prefix + std::string(part);
  }

  std::set<std::string_view> non_persistent_buffers(NodeId module) const {
    std::set<std::string_view> names;
    NodeId set = tree_.attribute(module, "_non_persistent_buffers_set");
    // set([...]), as protocols before 4 write it.
    if (is_pickled_object(tree_, set)) {
      const auto given = tree_.items(tree_.arguments(set));
      set = given.empty() ? NodeId::kAbsent : given[0];
    }
    for (NodeId item : tree_.items(set)) names.insert(tree_.text(item).value_or(""));
    return names;
  }

  const PickleTree& tree_;
  const std::string& file_;
  std::uint64_t visits_left_, text_left_;
  ModuleTensors out_;
};

}  // namespace

bool is_script_object(const PickleTree& tree, NodeId node) {
  const PickleGlobal* named =
      is_pickled_object(tree, node) ? tree.global(tree.callable(node)) : nullptr;
  return named != nullptr && is_script_module(named->module);
}

bool is_pickled_module(const PickleTree& tree, NodeId node) {
  if (is_script_object(tree, node)) return true;
  if (!is_pickled_object(tree, node)) return false;
  for (std::string_view part : {"_parameters", "_buffers", "_modules"}) {
    const NodeId held = tree.attribute(node, part);
    // An empty OrderedDict is pickled as a call without items.
    if (pickled_mapping(tree, held) == NodeId::kAbsent && tree.kind(held) != NodeKind::kReduce)
      return false;
  }
  return true;
}

std::string class_of_pickled(const PickleTree& tree, NodeId node) {
  const PickleGlobal* named = tree.global(tree.callable(node));
  // copyreg._reconstructor(class, object, None), as protocols 0 and 1 write it.
  const auto given = tree.items(tree.arguments(node));
  if (named != nullptr && named->name == "_reconstructor" && !given.empty())
    named = tree.global(given[0]);
  return named == nullptr ? "an unknown class" : named->module + "." + named->name;
}

Result<ModuleTensors> module_tensors(const PickleTree& tree, NodeId module,
                                     const std::string& file) {
  return ModuleWalk(tree, file).run(module);
}

}  // namespace shw
