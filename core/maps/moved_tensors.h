// Whole tensors that hold what belongs to another one of the reference, in words.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shw {

struct MovedTensor {
  std::size_t difference = 0;  // its number, for the one who asks
  std::string fqn, of;         // what it holds belongs to `of`
  bool is_copy = false;        // `of` holds it as well
};

// By number. Layers or experts that changed places are looked at together: off by one, swapped, or
// in another order.
std::map<std::size_t, std::string> moved_tensors_in_words(const std::vector<MovedTensor>& moved);

}  // namespace shw
