// Verifying a result next to which files are that its certificate does not name.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/repair/repaired.h"

using namespace shw;
namespace fs = std::filesystem;

TEST_CASE("verify: a file that the certificate does not name is undecided and not read") {
  const Repaired repaired;
  const std::string path = repaired.copy("stray");
  REQUIRE(outcome_of(path) == outcome_of(repaired.out));
  put(path + "/integrity.json", "");
  // Reading the holes of a terabyte takes minutes.
  fs::resize_file(path + "/integrity.json", std::uintmax_t{1} << 40);
  CHECK(outcome_of(path) == "undecided");
}

TEST_CASE("verify: a certified file of another size is broken and not read") {
  const Repaired repaired;
  const std::string path = repaired.copy("longer");
  fs::resize_file(path + "/common.pt", std::uintmax_t{1} << 40);
  CHECK(outcome_of(path) == "broken");
}
