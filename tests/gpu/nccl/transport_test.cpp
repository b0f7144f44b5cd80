#include "gpu/nccl_transport.h"

#include <doctest/doctest.h>

#include <string>

#include "core/cluster/conformance.h"
#include "on_double.h"
#include "to_itself.h"

using namespace shw;
using namespace shw::test;

namespace {

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

TEST_CASE("A communicator of one rank sends itself bytes") {
  for (std::size_t bytes : {256u, 1u << 20}) {
    auto stage = host_stage();
    const Status moved = send_to_itself(nccl_double().nccl, *stage, bytes);
    const std::string error = moved ? "" : moved.error().message;
    CHECK(error == "");
  }
}
