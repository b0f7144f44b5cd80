// Assignment of jobs to kernels, and messages on a machine without a GPU.
#include <doctest/doctest.h>

#include "gpu/cuda_executor.h"
#include "gpu/slab_tables.h"
#include "rig/streams.h"
#include "slab_cases.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("division by a known number is division") {
  SlabDice dice(1);
  for (int i = 0; i < 200000; ++i) {
    const auto divisor =
        static_cast<std::uint32_t>(dice.pick(1, std::int64_t{1} << dice.pick(0, 31)));
    const FastDivisor by = fast_divisor(divisor);
    for (std::uint32_t value : {0u, 1u, divisor - 1, divisor, divisor * 2 - 1, 0x7FFFFFFFu,
                                static_cast<std::uint32_t>(dice.bits() >> 33)}) {
      value &= 0x7FFFFFFFu;
      if (divided(value, by) != value / divisor)
        FAIL(value << " by " << divisor << " is not " << divided(value, by));
    }
  }
}

TEST_CASE("fifty thousand small tiles are one launch") {
  std::vector<TileJob> jobs;
  for (std::int64_t i = 0; i < 50000; ++i) {
    TileJob job;
    job.from = job.to = Dtype::kFloat32;
    for_each_canonical_pair(pair_of(Extents{64}, Extents{4}, i * 256, Extents{4}, i * 256),
                            [&](const LayoutPair& pair) { job.layouts = pair; });
    jobs.push_back(job);
  }
  SlabTables tables;
  add_tiles(tables, jobs);
  std::size_t kernels = 0;
  for (const auto& items : tables.items) kernels += items.empty() ? 0 : 1;
  CHECK(kernels == 1);
  CHECK(tables.of(Kernel::kRows16).size() == 50000);
}

TEST_CASE("what is too long for an index is several jobs, and no narrow dimension is cut") {
  // Two interleaved rows of 2^31 elements of 2 bytes.
  const std::int64_t count = std::int64_t{1} << 31;
  TileJob job;
  job.from = job.to = Dtype::kBfloat16;
  for_each_canonical_pair(pair_of(Extents{2, count}, Extents{2, 4}, 0, Extents{2 * count, 2}, 0),
                          [&](const LayoutPair& pair) { job.layouts = pair; });
  SlabTables tables;
  add_tiles(tables, std::span(&job, 1));
  CHECK(tables.jobs.size() == 32);
  CHECK(tables.of(Kernel::kElements).empty());
  CHECK_FALSE(tables.of(Kernel::kSeparate2).empty());
  std::uint64_t elements = 0;
  for (const DeviceJob& one : tables.jobs) {
    REQUIRE(one.ndim == 1);
    CHECK(one.run == 2);
    elements += std::uint64_t{one.dims[0].size} * interleaved_unit(2, 2) / 2;
  }
  CHECK(elements == std::uint64_t{2} << 31);
}

TEST_CASE("a machine without a GPU is told so in words") {
  struct {
    int devices, driver;
    const char* says;
  } const machines[] = {{0, 0, "no driver of a GPU was found"},
                        {1, 12000, "the driver of the GPU is older than CUDA 13 needs"},
                        {0, 13000, "no GPU was found"}};
  for (const auto& machine : machines) {
    rig::set_devices(machine.devices, machine.driver);
    Gpus found = cuda_gpus();
    CHECK(found.found.empty());
    CHECK(found.none == machine.says);
    auto executor = cuda_executor(0);
    REQUIRE_FALSE(executor.has_value());
    CHECK(executor.error().message == found.none);
    CHECK(executor.error().advice.find("--device cpu") != std::string::npos);
  }
  rig::set_devices(2);
  Gpus found = cuda_gpus();
  CHECK(found.none.empty());
  REQUIRE(found.found.size() == 2);
  CHECK(found.found[1].index == 1);
  CHECK(found.found[0].name == "Rig 0");
  rig::set_devices(1);
}
