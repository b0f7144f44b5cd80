// The part of the window that needs no picture.
#include "app/gui/workbench.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("workbench: a later check leaves the list as the user has set it") {
  const std::string folder = std::string(SHW_TEST_DATA) + "/torch-2.14/s1_placement_not_transposed";
  Workbench bench(nullptr);
  GuiOptions options;
  options.checkpoint = folder + "/ckpt";
  options.spec = folder + "/spec.json";
  bench.open(options);
  bench.settle();
  CHECK(bench.desk().filter == "finding:*");
  bench.desk().filter.clear();
  bench.apply(FilterCommand{});
  bench.apply(CheckCommand{Depth::kData});
  bench.settle();
  REQUIRE(bench.snapshot()->report != nullptr);
  CHECK(bench.snapshot()->report->depth == Depth::kData);
  CHECK(bench.desk().filter.empty());
  CHECK(bench.snapshot()->filter.empty());
  CHECK_FALSE(bench.busy());
}
