// Counting numbers on simulated devices, which may fail after any slab.
#include "core/exec/device_numbers.h"

#include <doctest/doctest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/exec/team_device.h"
#include "core/formats/open.h"
#include "core/tensor/statistics_counter.h"
#include "core/verbs/verbs.h"

using namespace shw;

namespace {

constexpr const char* kLost = "the card was lost";

struct CountingGpu {
  int good = 1 << 30;  // slabs until the device is lost
  std::atomic<int> opened{0}, begun{0};
};

// Counts like the CPU until it is lost, with several slabs in progress.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(CountingGpu& gpu) : gpu_(gpu) { ++gpu.opened; }
  Result<Fingerprint> run(const SlabWork& work) override {
    begin(work);
    return finish();
  }
  void begin(const SlabWork& work) override {
    under_way_.push_back({work, gpu_.begun.fetch_add(1) < gpu_.good});
  }
  Result<Fingerprint> finish() override {
    const auto [work, is_good] = under_way_.front();
    under_way_.erase(under_way_.begin());
    if (!is_good) return fail(ErrorKind::kIo, kLost);
    return cpu_->run(work);
  }
  std::size_t max_in_flight() override { return 2; }

 private:
  CountingGpu& gpu_;
  std::vector<std::pair<SlabWork, bool>> under_way_;
  std::unique_ptr<Executor> cpu_ = cpu_executor();
};

DeviceOptions counting_on(CountingGpu& gpu, OnDeviceError on_error = OnDeviceError::kCpu) {
  DeviceOptions wish{DeviceKind::kCuda, 0, on_error, {}};
  wish.gpus = [&gpu] {
    return Gpus{{{0, "Counting 1", 1 << 30}}, "", [&gpu](int) -> Result<std::unique_ptr<Executor>> {
                  return std::make_unique<CountingExecutor>(gpu);
                }};
  };
  return wish;
}

const StatisticsLoad kLoad{Dtype::kFloat32, 1 << 20};

Executors counters_on(CountingGpu& gpu, OnDeviceError on_error = OnDeviceError::kCpu) {
  auto executors = choose_statistics_executors(counting_on(gpu, on_error), std::span(&kLoad, 1));
  REQUIRE(executors.has_value());
  return *executors;
}

Bytes random_elements(std::size_t bytes, std::mt19937_64& random) {
  Bytes made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random() % 5 == 0 ? 0 : random());
  return made;
}

// Gives equal parts and zeros to both counters.
void add_alike(StatisticsBackend& a, StatisticsCounter& b, std::size_t width,
               std::mt19937_64& random) {
  std::size_t all = 0;
  for (std::uint64_t parts = random() % 6; parts > 0; --parts) {
    const Bytes bytes = random_elements(random() % 900, random);
    const std::uint64_t zeros = random() % 3 == 0 ? random() % 300 : 0;
    a.add(bytes);
    b.add(bytes);
    a.add_zeros(zeros);
    b.add_zeros(zeros);
    all += bytes.size() + zeros;
  }
  const Bytes rest = random_elements((width - all % width) % width, random);
  a.add(rest);
  b.add(rest);
}

const std::string kMoe = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

}  // namespace

TEST_CASE("numbers of every dtype are the same in whatever slabs a device counts them") {
  std::mt19937_64 random(4);
  for (int d = 1; d < static_cast<int>(Dtype::kCount); ++d) {
    const auto dtype = static_cast<Dtype>(d);
    const std::size_t width = size_of(dtype);
    if (width == 0) continue;
    CAPTURE(name(dtype));
    for (std::size_t least : {std::size_t{0}, std::size_t{400}}) {
      CountingGpu gpu;
      auto counter = statistics_backends(counters_on(gpu), {256, least})();
      StatisticsCounter alone;
      for (int tensor = 0; tensor < 8; ++tensor) {
        counter->begin(dtype);
        alone.begin(dtype);
        add_alike(*counter, alone, width, random);
        auto sums = counter->take();
        REQUIRE(sums.has_value());
        CHECK(*sums == alone.take());
      }
      CHECK(gpu.opened == 1);
      CHECK(gpu.begun > 8);
    }
  }
}

TEST_CASE("what was begun and not taken leaves nothing behind") {
  std::mt19937_64 random(5);
  CountingGpu gpu;
  auto counter = statistics_backends(counters_on(gpu), {256, 0})();
  const Bytes bytes = random_elements(1000, random);
  counter->begin(Dtype::kFloat32);
  counter->add(random_elements(2001, random));
  counter->begin(Dtype::kBfloat16);
  counter->add(bytes);
  StatisticsCounter alone;
  alone.begin(Dtype::kBfloat16);
  alone.add(bytes);
  CHECK(*counter->take() == alone.take());
  // Destroying a counter waits for work on its slabs.
  counter->begin(Dtype::kInt8);
  counter->add(bytes);
}

TEST_CASE("a card that is lost after any slab counts nothing twice and leaves nothing out") {
  std::mt19937_64 random(6);
  const Bytes bytes = random_elements(4096, random);
  StatisticsCounter alone;
  alone.begin(Dtype::kFloat16);
  alone.add(bytes);
  const StatisticsSums wanted = alone.take();
  for (int good = 0; good < 18; ++good) {
    CAPTURE(good);
    CountingGpu gpu{good};
    const Executors executors = counters_on(gpu);
    auto counter = statistics_backends(executors, {256, 0})();
    for (int again = 0; again < 2; ++again) {
      counter->begin(Dtype::kFloat16);
      counter->add(bytes);
      auto sums = counter->take();
      REQUIRE(sums.has_value());
      CHECK(*sums == wanted);
    }
    CHECK(executors.use().failed == kLost);
  }
}

TEST_CASE("a count that is to stop with its card says what the card said, once it is asked") {
  std::mt19937_64 random(7);
  CountingGpu gpu{2};
  auto counter = statistics_backends(counters_on(gpu, OnDeviceError::kStop), {256, 0})();
  counter->begin(Dtype::kFloat32);
  counter->add(random_elements(4096, random));
  auto sums = counter->take();
  REQUIRE_FALSE(sums.has_value());
  CHECK(sums.error().message == kLost);
  CHECK(sums.error().kind == ErrorKind::kIo);
}

TEST_CASE("little is counted where it is read and auto says why") {
  DeviceOptions wish{DeviceKind::kAuto};
  bool looked = false;
  wish.gpus = [&] {
    looked = true;
    return Gpus{{}, "there is no driver", {}};
  };
  auto little = choose_statistics_executors(wish, std::span(&kLoad, 1));
  REQUIRE(little.has_value());
  CHECK(little->use().device == "cpu");
  CHECK(little->use().why == "only 1.05 MB are counted: not worth a GPU's start");
  CHECK_FALSE(looked);
  const StatisticsLoad much{Dtype::kBfloat16, std::uint64_t{1} << 40};
  auto none = choose_statistics_executors(wish, std::span(&much, 1));
  REQUIRE(none.has_value());
  CHECK(none->use().why == "there is no driver");
  wish.kind = DeviceKind::kCuda;
  auto asked = choose_statistics_executors(wish, std::span(&kLoad, 1));
  REQUIRE_FALSE(asked.has_value());
  CHECK(asked.error().kind == ErrorKind::kIo);
}

namespace {

// Takes no time, or never ends.
class TimedExecutor final : public Executor {
 public:
  explicit TimedExecutor(bool is_slow) : is_slow_(is_slow) {}
  Result<Fingerprint> run(const SlabWork& work) override {
    auto cpu = cpu_executor();
    for (int i = 0; is_slow_ && i < 50; ++i) SHW_CHECK(cpu->run(work));
    return Fingerprint{};
  }

 private:
  bool is_slow_;
};

}  // namespace

TEST_CASE("auto counts on a card only where a sample of every dtype says that it is sooner") {
  const StatisticsLoad loads[] = {{Dtype::kBfloat16, std::uint64_t{1} << 34},
                                  {Dtype::kInt64, std::uint64_t{1} << 33},
                                  {Dtype::kUnknown, std::uint64_t{1} << 50}};
  for (bool is_slow : {false, true}) {
    DeviceOptions wish{DeviceKind::kAuto};
    wish.gpu_start = 0;
    wish.gpus = [is_slow] {
      return Gpus{
          {{0, "Timed 1", 1 << 30}}, "", [is_slow](int) -> Result<std::unique_ptr<Executor>> {
            return std::make_unique<TimedExecutor>(is_slow);
          }};
    };
    auto chosen = choose_statistics_executors(wish, loads);
    REQUIRE(chosen.has_value());
    CAPTURE(chosen->use().why);
    CHECK(chosen->use().device == (is_slow ? "cpu" : "cuda:0"));
    CHECK(chosen->use().why.find("counting is predicted to take ") == 0);
    CHECK(chosen->use().why.find("Timed 1") != std::string::npos);
  }
}

TEST_CASE("stats tells the same of 1, 2 and 7 threads and of cards that are lost on the way") {
  auto checkpoint = open_checkpoint(kMoe);
  REQUIRE(checkpoint.has_value());
  std::vector<TensorId> tensors;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t) tensors.push_back(TensorId{t});
  auto alone = statistics_of(**checkpoint, tensors, nullptr);
  REQUIRE(alone.has_value());
  for (int threads : {1, 2, 7}) {
    for (int good : {0, 1, 5, 1 << 30}) {
      CAPTURE(threads);
      CAPTURE(good);
      CountingGpu gpu{good};
      const Executors executors = counters_on(gpu);
      // Allows more threads than there are cores.
      tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 7);
      auto told = tbb::task_arena(threads).execute([&] {
        return statistics_of(**checkpoint, tensors, nullptr, nullptr,
                             statistics_backends(executors, {64, 0}));
      });
      REQUIRE(told.has_value());
      CHECK(gpu.begun > std::min(good, 4));
      CHECK(executors.use().failed == (good == 1 << 30 ? "" : kLost));
      for (std::size_t i = 0; i < told->size(); ++i) {
        CHECK((*told)[i].statistics == (*alone)[i].statistics);
        CHECK((*told)[i].is_whole());
      }
    }
  }
}

TEST_CASE("a count that stops with its card stops all of a team") {
  auto checkpoint = open_checkpoint(kMoe);
  REQUIRE(checkpoint.has_value());
  std::vector<TensorId> tensors;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t) tensors.push_back(TensorId{t});
  CountingGpu broken{1}, sound;
  const auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(30));
    const Executors executors =
        counters_on(transport.rank() == 1 ? broken : sound, OnDeviceError::kStop);
    SHW_TRY(auto told, statistics_of(**checkpoint, tensors, nullptr, &team,
                                     statistics_backends(executors, {64, 0})));
    return {};
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find(kLost) != std::string::npos);
  }
}

TEST_CASE("a team says what all of its devices did and whose card was lost") {
  verbs::Opened opened;
  auto checkpoint = open_checkpoint(kMoe);
  REQUIRE(checkpoint.has_value());
  opened.checkpoint = *checkpoint;
  auto alone = verbs::stats(opened, {});
  REQUIRE(alone.has_value());
  const auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(30));
    DeviceUse own{"cuda:0", "it was asked for", {}};
    own.works[0] = {100, 0.5};
    if (transport.rank() == 1) own.failed = kLost;
    if (transport.rank() == 2) own.device = "cpu";
    SHW_TRY(const DeviceUse all, gather_device_use(team, own));
    CHECK(all.device == "cuda:0, cpu");
    CHECK(all.why == "it was asked for");
    CHECK(all.failed == "worker 1: the card was lost");
    CHECK(all.works[0].bytes == 300);
    CHECK(all.works[0].seconds == 1.5);
    CountingGpu gpu;
    SHW_TRY(const verbs::CountedStatistics told,
            verbs::stats(opened, {}, counting_on(gpu), nullptr, &team));
    CHECK(told.device.device == "cuda:0");
    for (std::size_t i = 0; i < alone->size(); ++i)
      CHECK(told.tensors[i].statistics == (*alone)[i].statistics);
    return {};
  });
  for (const Status& one : ended) CHECK(one.has_value());
}

TEST_CASE("the verb counts on what was asked for and says so") {
  verbs::Opened opened;
  auto checkpoint = open_checkpoint(kMoe);
  REQUIRE(checkpoint.has_value());
  opened.checkpoint = *checkpoint;
  CountingGpu gpu{0};
  auto alone = verbs::stats(opened, {});
  auto told = verbs::stats(opened, {}, counting_on(gpu));
  REQUIRE((alone.has_value() && told.has_value()));
  CHECK(told->device.device == "cuda:0");
  CHECK(told->device.why == "it was asked for");
  REQUIRE(told->tensors.size() == alone->size());
  for (std::size_t i = 0; i < alone->size(); ++i)
    CHECK(told->tensors[i].statistics == (*alone)[i].statistics);
}
