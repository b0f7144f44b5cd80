#include "core/hdf5/hdf5_writer.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("an error of a file that is half made has the name that a person knows") {
  auto writer = Hdf5Writer::create("/no/such/folder/.x.h5.half-made", "x.h5");
  REQUIRE_FALSE(writer.has_value());
  if (has_hdf5()) CHECK(writer.error().place.file == "x.h5");
  CHECK(writer.error().message.find("half-made") == std::string::npos);
}
