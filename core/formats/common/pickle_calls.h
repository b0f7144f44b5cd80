// How many arguments the classes and functions of checkpoints take, and what state: with others
// Python stops while it reads the pickle, whatever the values are.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/formats/common/pickle_tree.h"

namespace shw {

struct PickleCallArity {
  // Where more are the least, it is nothing that can be called.
  std::uint32_t least = 0, most = ~std::uint32_t{0};
  // Given item by item where the class sets its state itself, else by name. torch.Size has none.
  enum class State : std::uint8_t { kAny, kByName, kItems, kNone } state = State::kAny;
  // Of the first argument, where there is one. kSizes: a sequence of integers.
  enum class Takes : std::uint8_t { kAny, kSequence, kSizes } takes = Takes::kAny;
  // REDUCE alone calls __init__: NEWOBJ and its like make an empty object of a dataclass.
  bool is_of_init = false;
};

// A class as opposed to a function, by Python's own habit; nested names ("a.b") are attribute
// look-ups and never pass.
bool looks_like_class(std::string_view name);
// What finds an attribute by its name: so Python 3.11.0 to 3.11.3 (Debian 12 has 3.11.2) pickle the
// member of an enumeration, getattr(class, "NAME"); every other Python has class(value).
bool finds_attribute(const PickleGlobal& global);
// A function for sure, where NEWOBJ and its like need a class.
bool is_surely_function(const PickleGlobal& global);
// A class method that a class itself is pickled through, and that runs nothing but the class:
// getattr(ZoneInfo, "_unpickle"), in newer protocols by the one name "ZoneInfo._unpickle".
bool is_own_maker(std::string_view module, std::string_view class_name, std::string_view method);
// How many of its first arguments it calls or makes: of torch._tensor._rebuild_from_type_v2 the
// function and the class, of copyreg._reconstructor the class and its base.
std::size_t called_arguments(const PickleGlobal& global);
PickleCallArity arity_of_call(std::string_view module, std::string_view name);
// `items`: of the state, where it has any.
bool is_state_of(const PickleCallArity& arity, NodeKind state, std::size_t items);
// Why Python refuses the call; null where it does not.
const char* refused_call(const PickleTree& tree, const PickleCallArity& arity, NodeId arguments);

// The class of the persistent id ("module", class, source file, source); kAbsent for any other.
NodeId class_in_id(const PickleTree& tree, NodeId id);
// What getattr found, where that is how the class itself is pickled.
bool is_found_maker(const PickleTree& tree, NodeId callable);
// (class, "NAME"): what getattr is given for a member of an enumeration. Of no other class does it
// run anything either; what is found and then called or changed is reported.
bool names_member(const PickleTree& tree, NodeId arguments);
// Python looks a key up by its hash. A list and a dict have none, nor does a tuple or a
// MetadataIndex that holds one.
bool has_hash(const PickleTree& tree, NodeId key);

}  // namespace shw
