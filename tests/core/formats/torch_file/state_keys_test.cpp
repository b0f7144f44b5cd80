// Repeated keys of a mapping, against the plain definition.
#include "core/formats/torch_file/state_keys.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

using namespace shw;

TEST_CASE("state keys: the last of equal keys counts, and equal texts of two kinds are ambiguous") {
  std::mt19937 random{41};
  for (int round = 0; round < 200; ++round) {
    std::vector<MappingKey> keys;
    for (auto count = random() % 12; count > 0; --count)
      keys.push_back(
          {std::to_string(random() % 4), random() % 3 == 0 ? NodeKind::kString : NodeKind::kInt});
    flag_repeated_keys(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      bool comes_again = false, has_other_kind = false;
      for (std::size_t other = 0; other < keys.size(); ++other) {
        const bool is_equal = keys[other].text == keys[i].text;
        comes_again = comes_again || (is_equal && keys[other].kind == keys[i].kind && other > i);
        has_other_kind = has_other_kind || (is_equal && keys[other].kind != keys[i].kind);
      }
      CHECK(keys[i].is_superseded == comes_again);
      CHECK(keys[i].is_ambiguous == has_other_kind);
    }
  }
}
