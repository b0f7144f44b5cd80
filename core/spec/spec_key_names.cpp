#include "core/spec/spec_key_names.h"

#include <array>
#include <string_view>

#include "core/base/spelling.h"

namespace shw {

std::string nearest_spec_key(const std::string& key) {
  constexpr std::array<std::string_view, 5> kRead = {"shape", "dtype", "mesh", "placements",
                                                     "role"};
  std::string nearest;
  std::size_t least = 3;
  for (std::string_view known : kRead) {
    // At most a third of the letters may differ, and at least one: two letters of "role" make
    // another word.
    const std::size_t limit = known.size() < 6 ? 1 : 2;
    const std::size_t distance = edit_distance(key, known, limit);
    if (distance > limit || distance >= least) continue;
    least = distance;
    nearest = known;
  }
  return nearest;
}

}  // namespace shw
