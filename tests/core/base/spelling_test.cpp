#include "core/base/spelling.h"

#include <doctest/doctest.h>

#include <array>

using namespace shw;

TEST_CASE("an edit is a letter more, less, other, or two that changed places") {
  CHECK(edit_distance("check", "check", 3) == 0);
  CHECK(edit_distance("chek", "check", 3) == 1);
  CHECK(edit_distance("chcek", "check", 3) == 1);
  CHECK(edit_distance("shock", "check", 3) == 2);
  CHECK(edit_distance("check", "repair", 2) == 3);
}

TEST_CASE("what was nearly typed comes first, and what is far away not at all") {
  std::array<std::string_view, 4> verbs{"check", "repair", "report", "explain"};
  CHECK(did_you_mean("chekc", verbs).front() == "check");
  CHECK(did_you_mean("repar", verbs).front() == "repair");
  CHECK(did_you_mean("zzz", verbs).empty());
  CHECK(did_you_mean_text({"repair", "report"}) == "did you mean repair or report?");
  CHECK(did_you_mean_text({}) == "");
}
