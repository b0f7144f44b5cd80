// How many arguments the classes and functions of checkpoints take, and what state: with others
// Python stops while it reads the pickle, whatever the values are.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/formats/common/pickle_tree.h"

namespace shw {

struct PickleCallLaw {
  // Where more are the least, it is nothing that can be called.
  std::uint32_t least = 0, most = ~std::uint32_t{0};
  // Given item by item where the class sets its state itself, else by name.
  enum class State : std::uint8_t { kAny, kByName, kItems } state = State::kAny;
};

// A class as opposed to a function, by Python's own habit; nested names ("a.b") are attribute
// look-ups and never pass.
bool looks_like_class(std::string_view name);
// What finds an attribute by its name: so Python 3.11.0 to 3.11.3 (Debian 12 has 3.11.2) pickle the
// member of an enumeration, getattr(class, "NAME"); every other Python has class(value).
bool finds_attribute(const PickleGlobal& global);
PickleCallLaw law_of_call(std::string_view module, std::string_view name);
// `items`: of the state, where it has any.
bool is_state_of(const PickleCallLaw& law, NodeKind state, std::size_t items);

}  // namespace shw
