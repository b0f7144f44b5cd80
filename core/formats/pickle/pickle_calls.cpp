#include "core/formats/pickle/pickle_calls.h"

#include <algorithm>
#include <array>

#include "core/tensor/dtype.h"

namespace shw {
namespace {

constexpr PickleCallArity kNeverCalled{1, 0};
constexpr PickleCallArity kEnumeration{1, 1};

using Takes = PickleCallArity::Takes;

struct NamedCall {
  std::string_view module, name;
  PickleCallArity arity;
};
// Argument counts of functions and enums in torch 2.6 to 2.15.
constexpr auto kCalls = std::to_array<NamedCall>({
    {"torch._utils", "_rebuild_tensor_v2", {6, 7}},
    {"torch._utils", "_rebuild_tensor_v3", {7, 8}},
    {"torch._utils", "_rebuild_parameter", {3, 3}},
    {"torch._utils", "_rebuild_parameter_with_state", {4, 4}},
    {"torch._utils", "_rebuild_tensor", {4, 4}},
    {"torch._utils", "_rebuild_wrapper_subclass", {8, 8}},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", {4, 4}},
    {"torch._tensor", "_rebuild_from_type_v2", {4, 4}},
    {"collections", "OrderedDict", {0, 1, PickleCallArity::State::kAny, Takes::kSequence}},
    {"torch", "Size", {0, 1, PickleCallArity::State::kNone, Takes::kSizes}},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING", kEnumeration},
    {"torch.distributed._shard.sharded_tensor.metadata", "MEM_FORMAT_ENCODING", kEnumeration},
    {"torch.distributed.checkpoint.planner", "WriteItemType", kEnumeration},
});
// DCP's dataclasses: created empty, then filled. Lists the fields without a default.
struct RecordFields {
  std::string_view name;
  std::uint32_t least;
};
constexpr auto kByName = std::to_array<RecordFields>({{"Metadata", 1},
                                                      {"TensorStorageMetadata", 3},
                                                      {"BytesStorageMetadata", 0},
                                                      {"ChunkStorageMetadata", 2},
                                                      {"MetadataIndex", 1},
                                                      {"StorageMeta", 0},
                                                      {"_StorageInfo", 3}});

const RecordFields* find_record(std::string_view name) {
  const auto found = std::find_if(kByName.begin(), kByName.end(),
                                  [&](const RecordFields& one) { return one.name == name; });
  return found == kByName.end() ? nullptr : &*found;
}

bool is_getattr_of_factory(const PickleTree& tree, std::span<const NodeId> items) {
  if (items.size() != 2 || tree.kind(items[0]) != NodeKind::kGlobal) return false;
  const PickleGlobal& found_in = *tree.global(items[0]);
  const auto name = tree.text(items[1]);
  return name && is_self_pickling_method(found_in.module, found_in.name, *name);
}

bool is_dcp_record(const PickleGlobal& global) {
  return global.module.starts_with("torch.distributed.") &&
         (global.name == "TensorProperties" || find_record(global.name) != nullptr);
}

// Classes of the standard library that are mutable and thus not hashable.
bool is_mutable_container(const PickleGlobal& global) {
  constexpr auto kOfCollections =
      std::to_array<std::string_view>({"OrderedDict", "defaultdict", "Counter", "deque"});
  constexpr auto kBuiltIn = std::to_array<std::string_view>({"list", "dict", "set", "bytearray"});
  const auto holds = [&](auto& names) {
    return std::find(names.begin(), names.end(), global.name) != names.end();
  };
  if (global.module == "collections") return holds(kOfCollections);
  return (global.module == "builtins" || global.module == "__builtin__") && holds(kBuiltIn);
}

constexpr int kDeepestKey = 16;

bool has_hash_within(const PickleTree& tree, NodeId key, int depth) {
  const NodeKind kind = tree.kind(key);
  if (kind == NodeKind::kDict || kind == NodeKind::kList) return false;
  if (depth == kDeepestKey) return true;
  if (kind == NodeKind::kObject || kind == NodeKind::kReduce) {
    const PickleGlobal* made_of = tree.global(tree.callable(key));
    if (made_of == nullptr) return true;
    if (is_mutable_container(*made_of)) return false;
    if (!is_dcp_record(*made_of)) return true;
    // The other records are mutable dataclasses, which are not hashable.
    return made_of->name == "MetadataIndex" &&
           (has_hash_within(tree, tree.attribute(key, "fqn"), kDeepestKey) &&
            has_hash_within(tree, tree.attribute(key, "offset"), kDeepestKey - 1));
  }
  if (kind != NodeKind::kTuple) return true;
  const auto items = tree.items(key);
  return std::all_of(items.begin(), items.end(),
                     [&](NodeId item) { return has_hash_within(tree, item, depth + 1); });
}

// True if Python can iterate over the first argument where the class requires it.
bool accepts_argument(const PickleTree& tree, const PickleCallArity& arity, NodeId argument) {
  const auto cannot_iterate = [](NodeKind kind) {
    return kind >= NodeKind::kNone && kind <= NodeKind::kFloat;
  };
  if (arity.takes == Takes::kAny) return true;
  const NodeKind kind = tree.kind(argument);
  if (cannot_iterate(kind)) return false;
  if (arity.takes == Takes::kSequence || (kind != NodeKind::kTuple && kind != NodeKind::kList))
    return true;
  const auto items = tree.items(argument);
  return std::none_of(items.begin(), items.end(), [&](NodeId item) {
    const NodeKind of_item = tree.kind(item);
    return of_item == NodeKind::kNone || (of_item >= NodeKind::kFloat && of_item <= NodeKind::kSet);
  });
}

}  // namespace

bool resembles_class_name(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' &&
         name.find('.') == std::string_view::npos;
}

bool is_getattr(const PickleGlobal& global) {
  return global.name == "getattr" &&
         (global.module == "builtins" || global.module == "__builtin__");
}

bool is_surely_function(const PickleGlobal& global) {
  // Lower-case names in these modules are functions, or classes that are never pickled.
  constexpr auto kOfFunctions = std::to_array<std::string_view>(
      {"torch._utils", "torch._tensor", "torch.serialization", "copyreg", "_codecs"});
  if (is_getattr(global)) return true;
  return !resembles_class_name(global.name) &&
         std::find(kOfFunctions.begin(), kOfFunctions.end(), global.module) != kOfFunctions.end();
}

NodeId class_of_persistent_module(const PickleTree& tree, NodeId id) {
  const auto items = tree.items(id);
  const bool is_module = items.size() == 4 && tree.text(items[0]) == "module" &&
                         tree.kind(items[1]) == NodeKind::kGlobal;
  return is_module ? items[1] : NodeId::kAbsent;
}

bool is_self_pickling_method(std::string_view module, std::string_view class_name,
                             std::string_view method) {
  return module == "zoneinfo" && class_name == "ZoneInfo" &&
         (method == "_unpickle" || method == "no_cache");
}

std::size_t callable_argument_count(const PickleGlobal& global) {
  if (global.module == "torch._tensor")
    return global.name == "_rebuild_from_type_v2" || global.name == "_rebuild_from_type" ? 2 : 0;
  if (global.module != "copyreg" && global.module != "copy_reg") return 0;
  if (global.name == "_reconstructor") return 2;
  return global.name == "__newobj__" || global.name == "__newobj_ex__" ? 1 : 0;
}

PickleCallArity arity_of_call(std::string_view module, std::string_view name) {
  // Storage classes are only named by persistent ids.
  if (module == "torch" && (dtype_from_torch(name) || dtype_from_storage_class(name)))
    return kNeverCalled;
  for (const NamedCall& call : kCalls) {
    if (call.module == module && call.name == name) return call.arity;
  }
  PickleCallArity arity;
  if (!module.starts_with("torch.distributed.")) return arity;
  if (name == "TensorProperties") arity.state = PickleCallArity::State::kItems;
  if (const RecordFields* record = find_record(name)) {
    arity.state = PickleCallArity::State::kByName;
    arity.least = record->least;
    arity.is_of_init = true;
  }
  return arity;
}

bool is_state_of(const PickleCallArity& arity, NodeKind state, std::size_t items) {
  // The properties dtype, layout, requires_grad, memory_format, pin_memory, and since torch 2.15
  // strides. If the state is a dict, Python unpacks its keys, so only their number matters.
  constexpr std::size_t kProperties = 5;
  switch (arity.state) {
    case PickleCallArity::State::kAny:
      return true;
    case PickleCallArity::State::kItems:
      return state != NodeKind::kDict || items / 2 == kProperties || items / 2 == kProperties + 1;
    case PickleCallArity::State::kNone:
      return state != NodeKind::kDict;
    case PickleCallArity::State::kByName:
      break;
  }
  // A pair contains the slots state.
  if (state == NodeKind::kTuple) return items == 2;
  return state == NodeKind::kDict || state == NodeKind::kNone || state > NodeKind::kSet;
}

const char* refused_call(const PickleTree& tree, const PickleCallArity& arity, NodeId arguments) {
  const auto items = tree.items(arguments);
  if (arity.least > arity.most) return "a dtype or storage name is called as a function";
  if (tree.kind(arguments) == NodeKind::kTuple &&
      (items.size() < arity.least || items.size() > arity.most))
    return "a call has too many arguments, or too few";
  return items.size() == 1 && !accepts_argument(tree, arity, items[0])
             ? "a call has an argument that its class does not take"
             : nullptr;
}

bool is_getattr_factory(const PickleTree& tree, NodeId callable) {
  if (tree.kind(callable) != NodeKind::kReduce ||
      tree.kind(tree.callable(callable)) != NodeKind::kGlobal ||
      !is_getattr(*tree.global(tree.callable(callable))))
    return false;
  return is_getattr_of_factory(tree, tree.items(tree.arguments(callable)));
}

bool is_getattr_of_member(const PickleTree& tree, NodeId arguments) {
  const auto items = tree.items(arguments);
  if (tree.kind(arguments) != NodeKind::kTuple || items.size() != 2 ||
      tree.kind(items[0]) != NodeKind::kGlobal)
    return false;
  if (is_getattr_of_factory(tree, items)) return true;
  const auto name = tree.text(items[1]);
  return resembles_class_name(tree.global(items[0])->name) && name && !name->starts_with('_');
}

bool is_hashable(const PickleTree& tree, NodeId key) {
  return has_hash_within(tree, key, 0);
}

}  // namespace shw
