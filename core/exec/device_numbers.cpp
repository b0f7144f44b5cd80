#include "core/exec/device_numbers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/tensor/cast.h"
#include "core/tensor/statistics_counter.h"

namespace shw {
namespace {

// One slab fills while the other is counted.
constexpr std::size_t kCounterSlabs = 2;

// Collects bytes in slabs and passes each full slab to the executor.
class DeviceStatisticsBackend final : public StatisticsBackend {
 public:
  DeviceStatisticsBackend(Executors executors, const CounterLimits& limits)
      : executors_(std::move(executors)), limits_(limits) {}
  // Slabs in flight are still being read.
  ~DeviceStatisticsBackend() override { drain(); }

  void begin(Dtype dtype) override {
    drain();
    failed_.reset();
    dtype_ = dtype;
    width_ = size_of(dtype);
    filled_ = 0;
    has_sent_ = false;
    sums_ = StatisticsSums(dtype);
    small_.begin(dtype);
  }
  void add(BytesView bytes) override {
    if (width_ == 0) return;
    while (!bytes.empty()) {
      const std::span<std::byte> room = free_slab_part();
      const std::size_t more = std::min(room.size() - filled_, bytes.size());
      std::memcpy(room.data() + filled_, bytes.data(), more);
      filled_ += more;
      bytes = bytes.subspan(more);
      if (filled_ == room.size()) send();
    }
  }
  void add_zeros(std::uint64_t bytes) override {
    if (width_ == 0 || bytes == 0) return;
    static constexpr std::byte kZeros[16] = {};
    const std::uint64_t begun = filled_ % width_;
    const std::uint64_t first = begun == 0 ? 0 : std::min<std::uint64_t>(width_ - begun, bytes);
    add(BytesView(kZeros).first(static_cast<std::size_t>(first)));
    bytes -= first;
    small_.add_zeros(bytes / width_ * width_);
    add(BytesView(kZeros).first(static_cast<std::size_t>(bytes % width_)));
  }
  Result<StatisticsSums> take() override {
    filled_ -= width_ == 0 ? 0 : filled_ % width_;
    if (filled_ != 0 && !has_sent_ && filled_ < limits_.least_bytes)
      small_.add(free_slab_part().first(filled_));
    else if (filled_ != 0)
      send();
    drain();
    sums_ += small_.take();
    if (failed_) return tl::unexpected<Error>(*std::exchange(failed_, std::nullopt));
    return std::move(sums_);
  }

 private:
  struct CountingSlab {
    Slab slab;
    StatisticsJob job;
    StatisticsSums sums;
  };

  // The free part of the slab, a multiple of every element size.
  std::span<std::byte> free_slab_part() {
    if (executor_ == nullptr) executor_ = executors_.make();
    return slabs_[next_].slab.room(std::max<std::size_t>(limits_.slab_bytes / 16 * 16, 16),
                                   executor_->memory());
  }
  void send() {
    CountingSlab& full = slabs_[next_];
    const BytesView bytes = free_slab_part().first(filled_);
    while (under_way_ >= executor_->max_in_flight()) finish_oldest_slab();
    full.sums = StatisticsSums(dtype_);
    full.job = {dtype_, 0, filled_ / width_, &full.sums};
    executor_->begin({bytes, {}, {}, {}, std::span(&full.job, 1)});
    has_sent_ = true;
    filled_ = 0;
    next_ = (next_ + 1) % kCounterSlabs;
    if (++under_way_ == kCounterSlabs) finish_oldest_slab();
  }
  void finish_oldest_slab() {
    const CountingSlab& oldest = slabs_[(next_ + kCounterSlabs - under_way_) % kCounterSlabs];
    auto done = executor_->finish();
    --under_way_;
    if (done)
      sums_ += oldest.sums;
    else if (!failed_)
      failed_ = std::move(done).error();
  }
  void drain() {
    while (under_way_ != 0) finish_oldest_slab();
  }

  Executors executors_;
  const CounterLimits limits_;
  std::array<CountingSlab, kCounterSlabs> slabs_;  // must outlive the executor
  std::unique_ptr<Executor> executor_;             // opened with the first byte
  StatisticsCounter small_;                        // for zeros, and for slabs too small to send
  std::size_t next_ = 0, under_way_ = 0;           // indices and count of slabs_
  std::size_t filled_ = 0, width_ = 0;             // in bytes
  Dtype dtype_ = Dtype::kUnknown;
  bool has_sent_ = false;  // since begin()
  StatisticsSums sums_;
  std::optional<Error> failed_;
};

// Values like real weights, within a few powers of two, which determine the speed of counting.
std::vector<std::byte> sample_weights(Dtype dtype, std::size_t count) {
  const std::size_t width = size_of(dtype);
  std::vector<std::byte> bytes(count * width);
  std::uint32_t random = 1;
  const auto draw = [&] {
    return static_cast<float>((random = random * 1664525 + 1013904223) >> 8);
  };
  const bool is_float = number_kind(dtype) == NumberKind::kFloat;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = (draw() + draw() + draw()) / static_cast<float>(1 << 24) - 1.5f;
    if (is_float)
      cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(&value), 4, dtype,
               bytes.data() + i * width, static_cast<std::int64_t>(width), 1);
    else
      std::memcpy(bytes.data() + i * width, &random, std::min<std::size_t>(width, 4));
  }
  return bytes;
}

constexpr std::size_t kSample = std::size_t{4} << 20;

// The best of several measurements. Executors with memory of their own get the data there first, as
// in DeviceStatisticsBackend.
Result<double> measure_statistics_seconds(Executor& executor, Dtype dtype) {
  const std::size_t count = kSample / size_of(dtype);
  const std::vector<std::byte> sample = sample_weights(dtype, count);
  const SlabMemory* memory = executor.memory();
  Slab slab;
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    BytesView bytes = sample;
    if (memory != nullptr) {
      const auto room = slab.room(sample.size(), memory);
      std::memcpy(room.data(), sample.data(), sample.size());
      bytes = room;
    }
    StatisticsSums sums(dtype);
    const StatisticsJob job{dtype, 0, count, &sums};
    SHW_CHECK(executor.run({bytes, {}, {}, {}, std::span(&job, 1)}));
    const double spent =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    best = i == 0 ? spent : std::min(best, spent);
  }
  return best / static_cast<double>(sample.size());
}

}  // namespace

Result<Executors> choose_statistics_executors(const DeviceOptions& options,
                                              std::span<const StatisticsLoad> loads) {
  DeviceLoad load{0, "counting", "counted", {}};
  for (const StatisticsLoad& one : loads) load.bytes += size_of(one.dtype) == 0 ? 0 : one.bytes;
  load.seconds = [loads](Executor& executor) -> Result<double> {
    double all = 0;
    for (const StatisticsLoad& one : loads) {
      if (size_of(one.dtype) == 0 || one.bytes == 0) continue;
      SHW_TRY(const double each, measure_statistics_seconds(executor, one.dtype));
      all += each * static_cast<double>(one.bytes);
    }
    return all;
  };
  return choose_for(options, load);
}

MakeStatisticsBackend statistics_backends(const Executors& executors, const CounterLimits& limits) {
  if (!executors.has_gpu()) return cpu_statistics_backend;
  return
      [executors, limits] { return std::make_unique<DeviceStatisticsBackend>(executors, limits); };
}

}  // namespace shw
