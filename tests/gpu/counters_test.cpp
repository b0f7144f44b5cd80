// The counters of `stats --device` on the rig: slabs in flight in its streams, and a GPU that fails
// at any operation, on several threads.
#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "core/exec/device_numbers.h"
#include "core/tensor/statistics_counter.h"
#include "gpu/cuda_executor.h"
#include "rig/streams.h"

using namespace shw;

namespace {

constexpr Dtype kCounted[] = {Dtype::kFloat32,      Dtype::kBfloat16, Dtype::kFloat16,
                              Dtype::kFloat64,      Dtype::kInt8,     Dtype::kInt64,
                              Dtype::kFloat8E4m3fn, Dtype::kBool,     Dtype::kComplex64};

Bytes drawn_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Executors on_rig_cards(OnDeviceError on_error = OnDeviceError::kCpu) {
  auto executors =
      choose_statistics_executors({DeviceKind::kCuda, kAnyGpu, on_error, cuda_gpus}, {});
  REQUIRE(executors.has_value());
  return *executors;
}

// True if a counter's result equals that of a CPU core.
bool counts_alike(StatisticsBackend& counter, Dtype dtype, std::uint64_t seed) {
  const Bytes bytes = drawn_bytes(4800, seed);
  StatisticsCounter alone;
  alone.begin(dtype);
  counter.begin(dtype);
  for (std::size_t at = 0; at < bytes.size(); at += 160) {
    alone.add(BytesView(bytes).subspan(at, 160));
    counter.add(BytesView(bytes).subspan(at, 160));
    alone.add_zeros(48);
    counter.add_zeros(48);
  }
  auto sums = counter.take();
  return sums && *sums == alone.take();
}

}  // namespace

TEST_CASE("counters come to the same in whatever order streams go on") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    rig::begin_streams(seed);
    {
      const Executors executors = on_rig_cards();
      auto counter = statistics_backends(executors, {1024, 0})();
      for (Dtype dtype : kCounted) {
        CAPTURE(name(dtype));
        CHECK(counts_alike(*counter, dtype, seed));
      }
      CHECK(executors.use().failed == "");
      CHECK(slowest(executors.use().works).has_value());
    }
    CHECK(rig::memory_held() == 0);
  }
}

TEST_CASE("counters of several threads and cards come to the same wherever a card is lost") {
  std::size_t lost = 0;
  for (std::uint64_t operation : {0u, 1u, 2u, 5u, 11u, 23u, 47u}) {
    CAPTURE(operation);
    rig::begin_streams(operation);
    rig::set_devices(2);
    rig::fail_from(operation);
    {
      const Executors executors = on_rig_cards();
      CHECK(executors.use().device == "cuda:0,1");
      std::vector<int> right(3);
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < right.size(); ++t)
        threads.emplace_back([&, t] {
          auto counter = statistics_backends(executors, {1024, 0})();
          for (Dtype dtype : kCounted) right[t] += counts_alike(*counter, dtype, 100 + t) ? 1 : 0;
        });
      for (std::thread& thread : threads) thread.join();
      for (int count : right) CHECK(count == static_cast<int>(std::size(kCounted)));
      lost += executors.use().failed.empty() ? 0 : 1;
      CHECK(executors.use().failed.empty() == (operation == 0));
    }
    rig::begin_streams(operation);
    rig::set_devices(1);
    CHECK(rig::memory_held() == 0);
  }
  CHECK(lost == 6);
}
