#include "core/formats/common/pickle_calls.h"

#include <algorithm>
#include <array>

#include "core/tensor/dtype.h"

namespace shw {
namespace {

constexpr PickleCallLaw kNeverCalled{1, 0};
constexpr PickleCallLaw kEnumeration{1, 1};

struct NamedCall {
  std::string_view module, name;
  PickleCallLaw law;
};
// torch 2.6 to 2.15: arguments of functions, and the value that makes a member of an enumeration.
constexpr auto kCalls = std::to_array<NamedCall>({
    {"torch._utils", "_rebuild_tensor_v2", {6, 7}},
    {"torch._utils", "_rebuild_tensor_v3", {7, 8}},
    {"torch._utils", "_rebuild_parameter", {3, 3}},
    {"collections", "OrderedDict", {0, 1}},
    {"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING", kEnumeration},
    {"torch.distributed._shard.sharded_tensor.metadata", "MEM_FORMAT_ENCODING", kEnumeration},
    {"torch.distributed.checkpoint.planner", "WriteItemType", kEnumeration},
});
// Records of DCP: made empty, and then given their fields.
constexpr auto kByName = std::to_array<std::string_view>(
    {"Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata",
     "MetadataIndex", "StorageMeta", "_StorageInfo"});

}  // namespace

bool looks_like_class(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' &&
         name.find('.') == std::string_view::npos;
}

bool finds_attribute(const PickleGlobal& global) {
  return global.name == "getattr" &&
         (global.module == "builtins" || global.module == "__builtin__");
}

bool is_own_maker(std::string_view module, std::string_view class_name, std::string_view method) {
  return module == "zoneinfo" && class_name == "ZoneInfo" &&
         (method == "_unpickle" || method == "no_cache");
}

bool calls_its_argument(const PickleGlobal& global) {
  return global.module == "torch._tensor" && global.name == "_rebuild_from_type_v2";
}

PickleCallLaw law_of_call(std::string_view module, std::string_view name) {
  // A class of storages is only named, by what says where the storage lies.
  if (module == "torch" && (dtype_from_torch(name) || dtype_from_storage_class(name)))
    return kNeverCalled;
  for (const NamedCall& call : kCalls) {
    if (call.module == module && call.name == name) return call.law;
  }
  PickleCallLaw law;
  if (!module.starts_with("torch.distributed.")) return law;
  if (name == "TensorProperties") law.state = PickleCallLaw::State::kItems;
  if (std::find(kByName.begin(), kByName.end(), name) != kByName.end())
    law.state = PickleCallLaw::State::kByName;
  return law;
}

bool is_state_of(const PickleCallLaw& law, NodeKind state, std::size_t items) {
  // dtype, layout, requires_grad, memory_format, pin_memory, and since torch 2.15 strides: of a
  // dict its keys are taken for them.
  constexpr std::size_t kProperties = 5;
  switch (law.state) {
    case PickleCallLaw::State::kAny:
      return true;
    case PickleCallLaw::State::kItems:
      return state != NodeKind::kDict || items / 2 == kProperties || items / 2 == kProperties + 1;
    case PickleCallLaw::State::kByName:
      break;
  }
  // A pair is one of slots.
  if (state == NodeKind::kTuple) return items == 2;
  return state == NodeKind::kDict || state == NodeKind::kNone || state > NodeKind::kSet;
}

}  // namespace shw
