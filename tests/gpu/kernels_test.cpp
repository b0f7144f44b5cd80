// Compares every kernel on the rig with the CPU's executor and with loops over elements.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>

#include "rig_executor.h"
#include "slab_cases.h"

using namespace shw;
using namespace shw::test;

namespace {

// SHARDWRIGHT_RIG_SLABS: number of slabs; a thousand take a minute.
std::uint64_t slabs() {
  const char* asked = std::getenv("SHARDWRIGHT_RIG_SLABS");
  return asked == nullptr ? 100 : std::strtoull(asked, nullptr, 10);
}

}  // namespace

TEST_CASE("kernels, the CPU and loops over elements make the same of random slabs") {
  auto cpu = cpu_executor();
  RigExecutor rig;
  for (std::uint64_t seed = 0; seed < slabs(); ++seed) {
    SlabCase slab = random_slab(seed, seed % 16 == 0 ? 20000 : 2000);
    std::vector<std::byte> wanted(slab.out.size(), kPoison);
    Fingerprint sum = run_slowly(slab, wanted);
    CAPTURE(seed);
    std::string cpu_differs = difference(*cpu, slab, wanted, sum);
    REQUIRE_MESSAGE(cpu_differs.empty(), cpu_differs);
    std::string rig_differs = difference(rig, slab, wanted, sum);
    REQUIRE_MESSAGE(rig_differs.empty(), rig_differs);
  }
}

TEST_CASE("random slabs ask for every kernel") {
  std::array<std::size_t, static_cast<std::size_t>(Kernel::kCount)> asked{};
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SlabCase slab = random_slab(seed, 2000);
    SlabTables tables;
    add_tiles(tables, slab.tiles);
    add_fingerprints(tables, slab.elements);
    add_numbers(tables, slab.numbers);
    for (std::size_t k = 0; k < asked.size(); ++k) asked[k] += tables.items[k].size();
  }
  for (std::size_t k = 0; k < asked.size(); ++k)
    CHECK_MESSAGE(asked[k] > 0, "kernel " << k << " was never asked for");
}
