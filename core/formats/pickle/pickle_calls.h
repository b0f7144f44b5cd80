// The number of arguments and the kind of state that classes and functions in checkpoints accept.
// For others Python raises while unpickling, whatever the values are.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/formats/pickle/pickle_tree.h"

namespace shw {

struct PickleCallArity {
  // least > most: the name cannot be called.
  std::uint32_t least = 0, most = ~std::uint32_t{0};
  // How state is applied: by attribute name, or unpacked by the class's own __setstate__ (kItems).
  // torch.Size accepts none.
  enum class State : std::uint8_t { kAny, kByName, kItems, kNone } state = State::kAny;
  // Requirement for the first argument. kSizes: a sequence of integers.
  enum class Takes : std::uint8_t { kAny, kSequence, kSizes } takes = Takes::kAny;
  // Only REDUCE calls __init__ and needs the arguments; NEWOBJ creates an empty dataclass object.
  bool is_of_init = false;
};

// True if the name is a class by Python's naming convention. Nested names ("a.b") are attribute
// look-ups and return false.
bool resembles_class_name(std::string_view name);
// True for builtins.getattr. Python 3.11.0 to 3.11.3 (Debian 12 has 3.11.2) pickle an enumeration
// member as getattr(class, "NAME"); other versions as class(value).
bool is_getattr(const PickleGlobal& global);
// True for a known function, which NEWOBJ cannot instantiate.
bool is_surely_function(const PickleGlobal& global);
// True for a class method by which Python pickles a class itself and that only creates the class:
// getattr(ZoneInfo, "_unpickle"), or in newer protocols the name "ZoneInfo._unpickle".
bool is_self_pickling_method(std::string_view module, std::string_view class_name,
                             std::string_view method);
// Number of leading arguments that the function calls itself: for
// torch._tensor._rebuild_from_type_v2 the function and the class, for copyreg._reconstructor the
// class and its base.
std::size_t callable_argument_count(const PickleGlobal& global);
PickleCallArity arity_of_call(std::string_view module, std::string_view name);
// `items`: number of items of the state, if it is a container.
bool is_state_of(const PickleCallArity& arity, NodeKind state, std::size_t items);
// The reason why Python refuses the call; null if it does not.
const char* refused_call(const PickleTree& tree, const PickleCallArity& arity, NodeId arguments);

// The class in a persistent id ("module", class, source file, source); kAbsent for other ids.
NodeId class_of_persistent_module(const PickleTree& tree, NodeId id);
// True if `callable` is the result of getattr and the class is normally pickled this way.
bool is_getattr_factory(const PickleTree& tree, NodeId callable);
// True for the arguments (class, "NAME") of getattr, as for an enumeration member. Looking up a
// name in another class runs nothing either; calling or changing the result is reported.
bool is_getattr_of_member(const PickleTree& tree, NodeId arguments);
// True if Python can hash the key. Lists and dicts cannot be hashed, nor a tuple or MetadataIndex
// that contains one.
bool is_hashable(const PickleTree& tree, NodeId key);

}  // namespace shw
