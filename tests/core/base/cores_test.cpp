#include "core/base/cores.h"

#include <doctest/doctest.h>

#include "core/base/parallel.h"

using namespace shw;

TEST_CASE("Processes that use the same cores share the threads, and each has one at least") {
  const std::size_t alone = worker_count();
  CHECK_FALSE(own_cores().empty());
  CHECK(own_cores() == own_cores());
  share_cores(2);
  CHECK(worker_count() == (alone < 4 ? 1 : alone / 2));
  share_cores(100'000);
  CHECK(worker_count() == 1);
  share_cores(0);
  CHECK(worker_count() == alone);
  share_cores(1);
  CHECK(worker_count() == alone);
}
