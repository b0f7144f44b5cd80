#include "gpu/nccl_transport.h"

#include <doctest/doctest.h>

#include <string>

#include "core/cluster/collectives.h"
#include "core/cluster/conformance.h"
#include "on_double.h"

using namespace shw;
using namespace shw::test;
using namespace std::chrono_literals;

namespace {

const WaitStep kLong{"test", 30s};

void check_all_well(const std::vector<Status>& ended) {
  for (const Status& one : ended) {
    const std::string error = one ? "" : one.error().message;
    CHECK(error == "");
  }
}

}  // namespace

TEST_CASE("NCCL does what every transport does") {
  for (int workers : {1, 2, 4, 5}) {
    for (const auto& one : conformance_cases()) {
      CAPTURE(one.title);
      CAPTURE(workers);
      check_all_well(run_on_nccl(workers, nccl_options(), one.run));
    }
  }
  NcclDoubleCounts counts{};
  nccl_double().counts(&counts);
  CHECK(counts.alive == 0);
  CHECK(counts.groups > 100);
}
