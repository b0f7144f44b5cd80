// Slabs in three streams of a simulated GPU: each stream runs its work at random moments, so that
// only events and waits keep the order.
#include <doctest/doctest.h>

#include <deque>
#include <thread>

#include "core/exec/device.h"
#include "gpu/cuda_executor.h"
#include "rig/streams.h"
#include "slab_cases.h"

using namespace shw;
using namespace shw::test;

namespace {

// A slab in flight, and its destination.
struct Travelling {
  SlabCase slab;
  std::vector<std::byte> wanted, made;
  Fingerprint sum;
  std::vector<StatisticsJob> numbers;
  std::vector<StatisticsSums> counted;

  explicit Travelling(std::uint64_t seed) : slab(random_slab(seed, 300)) {
    wanted.assign(slab.out.size(), kPoison);
    made = wanted;
    sum = run_slowly(slab, wanted);
    numbers = slab.numbers;
    for (const StatisticsJob& job : numbers) counted.emplace_back(job.dtype);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].sums = &counted[i];
  }
  Travelling(const Travelling&) = delete;
  Travelling& operator=(const Travelling&) = delete;
  SlabWork work() {
    SlabWork work = slab.work(made);
    work.numbers = numbers;
    return work;
  }
  bool is_right(const Fingerprint& found) const {
    return made == wanted && found == sum && counted == slab.counted;
  }
};

struct Travelled {
  std::size_t right = 0, wrong = 0, failed = 0;
};

// Works like write_blocks(): waits for the oldest slab when as many as allowed are in progress.
Travelled travel(Executor& executor, std::uint64_t seed, std::size_t slabs) {
  Travelled all;
  std::deque<Travelling> under_way;
  const auto end_oldest = [&] {
    auto found = executor.finish();
    if (!found)
      ++all.failed;
    else
      ++(under_way.front().is_right(*found) ? all.right : all.wrong);
    under_way.pop_front();
  };
  for (std::size_t i = 0; i < slabs; ++i) {
    if (under_way.size() >= executor.max_in_flight()) end_oldest();
    executor.begin(under_way.emplace_back(seed * 100 + i).work());
  }
  while (!under_way.empty()) end_oldest();
  return all;
}

DeviceOptions on_rig(OnDeviceError on_error) {
  return {DeviceKind::kCuda, 0, on_error, cuda_gpus};
}

}  // namespace

TEST_CASE("slabs under way come to the same in whatever order streams go on") {
  std::size_t overtaken = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    rig::begin_streams(seed);
    {
      auto executor = cuda_executor(0);
      REQUIRE(executor.has_value());
      CHECK((*executor)->max_in_flight() == 4);
      const Travelled all = travel(**executor, seed, 7);
      CHECK(all.right == 7);
      const DeviceWorks works = (*executor)->collect_device_times();
      for (const DeviceWork& work : works) CHECK(work.seconds == doctest::Approx(7e-3));
      CHECK((*executor)->collect_device_times()[0].bytes == 0);
    }
    overtaken += rig::stream_counts().overtaken;
    CHECK(rig::memory_held() == 0);
  }
  CHECK(overtaken > 24);
}

TEST_CASE("the rig sees that a stream does not wait for the kernels of its slab") {
  std::size_t wrong = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    rig::begin_streams(seed);
    rig::forget_waits(true);
    auto executor = cuda_executor(0);
    REQUIRE(executor.has_value());
    wrong += travel(**executor, seed, 6).wrong;
    rig::forget_waits(false);
  }
  CHECK(wrong > 0);
}

TEST_CASE(
    "slabs of pinned memory are given back, and others take their place where there is none") {
  rig::begin_streams(1);
  auto executor = cuda_executor(0);
  REQUIRE(executor.has_value());
  const std::size_t before = rig::memory_held();
  {
    Slab slab;
    CHECK(slab.room(1000, (*executor)->memory()).size() == 1000);
    CHECK(rig::memory_held() == before + 1000);
    slab.room(5000, (*executor)->memory());
    CHECK(rig::memory_held() == before + 5000);
  }
  CHECK(rig::memory_held() == before);
  {  // on a thread that has not used this device and has another one set
    auto second = cuda_executor(1);
    REQUIRE(second.has_value());
    const std::size_t of_second = rig::memory_held(1);
    Slab slab, other;
    std::thread([&] { slab.room(1000, (*second)->memory()); }).join();
    other.room(500, (*second)->memory());
    CHECK(rig::memory_held(1) == of_second + 1500);
  }
  rig::fail_from(1);
  std::vector<std::byte> bytes(8);
  CHECK_FALSE((*executor)->run({bytes, {}, {}, bytes}).has_value());
  Slab slab;
  auto room = slab.room(64, (*executor)->memory());
  REQUIRE(room.size() == 64);
  room[63] = std::byte{1};
  rig::begin_streams(1);
}

TEST_CASE("whenever a card is lost the CPU makes what had not come back, once") {
  for (std::uint64_t operation = 1; operation <= 60; operation += 3) {
    CAPTURE(operation);
    rig::begin_streams(operation);
    rig::fail_from(operation);
    auto executors = choose_executors(on_rig(OnDeviceError::kCpu), Program{});
    REQUIRE(executors.has_value());
    auto executor = executors->make();
    const Travelled all = travel(*executor, operation, 6);
    CHECK(all.right == 6);
    const bool was_lost = rig::stream_counts().operations >= operation;
    const DeviceUse use = executors->use();
    CHECK(use.failed.empty() == !was_lost);
    if (!was_lost) CHECK(slowest(use.works).has_value());
    executor.reset();
    rig::begin_streams(operation);
    CHECK(rig::memory_held() == 0);
  }
}

TEST_CASE("a run that is to stop with its card answers for all that was under way") {
  for (std::uint64_t operation : {1u, 4u, 9u, 20u}) {
    CAPTURE(operation);
    rig::begin_streams(operation);
    rig::fail_from(operation);
    auto executors = choose_executors(on_rig(OnDeviceError::kStop), Program{});
    REQUIRE(executors.has_value());
    auto executor = executors->make();
    const Travelled all = travel(*executor, operation, 8);
    CHECK(all.failed > 0);
    CHECK(all.wrong == 0);
    CHECK(executors->has_stopped());
    executor.reset();
    rig::begin_streams(operation);
  }
}
