#include "core/exec/device.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <mutex>

#include "core/base/parallel.h"
#include "core/base/words.h"

namespace shw {

// State of a run's device, shared by its threads.
struct DeviceState {
  std::function<Result<std::unique_ptr<Executor>>()> gpu;  // empty: CPU
  OnDeviceError on_error = OnDeviceError::kCpu;
  std::atomic<bool> has_failed{false};
  mutable std::mutex mutex;
  DeviceUse use;  // guarded by the mutex

  void note_failure(const Error& error) {
    std::lock_guard lock(mutex);
    if (use.failed.empty()) use.failed = error.message;
    has_failed.store(true, std::memory_order_relaxed);
  }
  void add(const DeviceWorks& works) {
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < kDeviceStages; ++i) {
      use.works[i].bytes += works[i].bytes;
      use.works[i].seconds += works[i].seconds;
    }
  }
};

namespace {

// Bytes below which no GPU is searched for: the search takes longer than the work.
constexpr std::uint64_t kMinBytesForGpu = std::uint64_t{256} << 20;

// Threads take the GPUs in turn.
Executors executors_on_gpus(const DeviceOptions& options, const Gpus& gpus,
                            const std::vector<int>& taken, std::string why) {
  std::string device = "cuda:";
  for (std::size_t i = 0; i < taken.size(); ++i)
    device += fmt::format("{}{}", i == 0 ? "" : ",", taken[i]);
  auto next = std::make_shared<std::atomic<std::size_t>>(0);
  return {[open = gpus.open, taken, next] { return open(taken[(*next)++ % taken.size()]); },
          options.on_error,
          {std::move(device), std::move(why), {}}};
}

Executors executors_on_cpu(std::string why) {
  return Executors(DeviceUse{"cpu", std::move(why), {}});
}

std::string name_of(const Gpus& gpus, int index) {
  for (const Gpu& gpu : gpus.found) {
    if (gpu.index == index) return gpu.name;
  }
  return fmt::format("cuda:{}", index);
}

// Predicted seconds with all CPU threads.
Result<double> predict_cpu_seconds(const DeviceLoad& load) {
  auto cpu = cpu_executor();
  SHW_TRY(const double seconds, load.seconds(*cpu));
  return seconds / static_cast<double>(worker_count());
}

std::string cpu_forecast_text(const DeviceLoad& load, double by_cpu) {
  return fmt::format("{} is predicted to take {} on {}", load.doing, human_seconds(by_cpu),
                     plural(worker_count(), "thread"));
}

// The executors with the lower predicted time.
Executors faster_executors(const DeviceOptions& options, const DeviceLoad& load, double by_cpu,
                           const Gpus& gpus, const std::vector<int>& taken) {
  auto gpu = gpus.open(taken.front());
  if (!gpu) return executors_on_cpu("the GPU did not start: " + gpu.error().message);
  const auto there = load.seconds(**gpu);
  if (!there) return executors_on_cpu("the GPU failed in a sample: " + there.error().message);
  // Threads share the bus to the GPU.
  const double by_gpu = *there / static_cast<double>(taken.size());
  std::string why =
      fmt::format("{} and {} on {}", cpu_forecast_text(load, by_cpu), human_seconds(by_gpu),
                  taken.size() == 1 ? name_of(gpus, taken.front()) : plural(taken.size(), "GPU"));
  return by_gpu < by_cpu ? executors_on_gpus(options, gpus, taken, std::move(why))
                         : executors_on_cpu(std::move(why));
}

}  // namespace

// Opens the GPU executor on first use, and switches to the CPU after a failure.
class DeviceExecutor final : public Executor {
 public:
  explicit DeviceExecutor(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}

  Result<Fingerprint> run(const SlabWork& work) override {
    begin(work);
    return finish();
  }
  void begin(const SlabWork& work) override {
    StartedSlab begun{work, acquire_gpu(), {}};
    if (begun.on_gpu)
      gpu_->begin(work);
    else
      begun.done = run_without_gpu(work);
    under_way_.push_back(std::move(begun));
  }
  Result<Fingerprint> finish() override {
    StartedSlab oldest = std::move(under_way_.front());
    under_way_.pop_front();
    if (!oldest.on_gpu) return std::move(oldest.done);
    auto done = gpu_->finish();
    state_->add(gpu_->collect_device_times());
    if (done) return done;
    state_->note_failure(done.error());
    fall_back_to_cpu();
    return run_without_gpu(oldest.work);
  }
  std::size_t max_in_flight() override { return acquire_gpu() ? gpu_->max_in_flight() : 1; }
  const SlabMemory* memory() override { return acquire_gpu() ? gpu_->memory() : nullptr; }

 private:
  struct StartedSlab {
    SlabWork work;
    bool on_gpu = false;
    Result<Fingerprint> done;  // result if executed on the CPU
  };

  bool acquire_gpu() {
    if (state_->gpu == nullptr || state_->has_failed.load(std::memory_order_relaxed)) return false;
    if (gpu_ != nullptr) return true;
    auto opened = state_->gpu();
    if (opened)
      gpu_ = std::move(*opened);
    else
      state_->note_failure(opened.error());
    return gpu_ != nullptr;
  }
  // Collects what the GPU still completes for other slabs; the rest runs on the CPU.
  void fall_back_to_cpu() {
    for (StartedSlab& begun : under_way_) {
      if (!begun.on_gpu) continue;
      begun.on_gpu = false;
      begun.done = gpu_->finish();
    }
    gpu_.reset();
    for (StartedSlab& begun : under_way_)
      if (!begun.done) begun.done = run_without_gpu(begun.work);
  }
  // Repeats the whole slab on the CPU, whatever the GPU has completed of it.
  Result<Fingerprint> run_without_gpu(const SlabWork& work) {
    if (state_->gpu != nullptr && state_->on_error == OnDeviceError::kStop) {
      std::lock_guard lock(state_->mutex);
      return fail(ErrorKind::kIo, state_->use.failed);
    }
    if (cpu_ == nullptr) cpu_ = cpu_executor();
    return cpu_->run(work);
  }

  std::shared_ptr<DeviceState> state_;
  std::unique_ptr<Executor> gpu_, cpu_;
  std::deque<StartedSlab> under_way_;
};

Executors::Executors() : state_(std::make_shared<DeviceState>()) {}

Executors::Executors(DeviceUse cpu) : Executors() {
  state_->use = std::move(cpu);
}

Executors::Executors(std::function<Result<std::unique_ptr<Executor>>()> gpu, OnDeviceError on_error,
                     DeviceUse use)
    : Executors() {
  state_->gpu = std::move(gpu);
  state_->on_error = on_error;
  state_->use = std::move(use);
}

std::unique_ptr<Executor> Executors::make() const {
  return std::make_unique<DeviceExecutor>(state_);
}

DeviceUse Executors::use() const {
  std::lock_guard lock(state_->mutex);
  return state_->use;
}

bool Executors::has_gpu() const {
  return state_->gpu != nullptr;
}

bool Executors::has_stopped() const {
  return state_->has_failed && state_->on_error == OnDeviceError::kStop;
}

std::string_view name(DeviceStage stage) {
  constexpr std::string_view kNames[kDeviceStages] = {"send", "kernels", "fetch"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::optional<DeviceStage> slowest(const DeviceWorks& works) {
  std::optional<DeviceStage> slowest;
  for (std::size_t i = 0; i < kDeviceStages; ++i) {
    const double most = slowest ? works[static_cast<std::size_t>(*slowest)].seconds : 0;
    if (works[i].seconds > most) slowest = static_cast<DeviceStage>(i);
  }
  return slowest;
}

bool parse_device(std::string_view text, DeviceOptions& options) {
  options.index = kAnyGpu;
  options.kind = text == "auto"  ? DeviceKind::kAuto
                 : text == "cpu" ? DeviceKind::kCpu
                                 : DeviceKind::kCuda;
  if (options.kind != DeviceKind::kCuda || text == "cuda") return true;
  constexpr std::string_view kPrefix = "cuda:";
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  std::string_view number = text.substr(kPrefix.size());
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.index);
  return error == std::errc{} && end == number.data() + number.size() && options.index >= 0;
}

std::string to_text(const DeviceOptions& options) {
  if (options.kind == DeviceKind::kAuto) return "auto";
  if (options.kind == DeviceKind::kCpu) return "cpu";
  return options.index == kAnyGpu ? "cuda" : fmt::format("cuda:{}", options.index);
}

Result<std::vector<int>> choose_gpus(const DeviceOptions& options, const Gpus& gpus) {
  if (!gpus.none.empty() || gpus.found.empty()) {
    return fail(ErrorKind::kIo,
                "no GPU can be used: " + (gpus.none.empty() ? "none was found" : gpus.none), {},
                "run this again with --device cpu");
  }
  std::vector<int> all;
  std::string there;
  for (const Gpu& gpu : gpus.found) {
    all.push_back(gpu.index);
    there += fmt::format("{}cuda:{} ({})", there.empty() ? "" : ", ", gpu.index, gpu.name);
  }
  const bool is_named = options.kind == DeviceKind::kCuda && options.index != kAnyGpu;
  if (is_named && std::find(all.begin(), all.end(), options.index) == all.end())
    return fail(ErrorKind::kIo, fmt::format("there is no GPU {}", options.index), {},
                "there is " + there);
  if (is_named) return std::vector{options.index};
  if (options.local_rank)
    return std::vector{all[static_cast<std::size_t>(*options.local_rank) % all.size()]};
  return all;
}

Result<Executors> choose_for(const DeviceOptions& options, const DeviceLoad& load) {
  if (options.kind == DeviceKind::kCpu) return executors_on_cpu("it was asked for");
  double by_cpu = 0;
  if (options.kind == DeviceKind::kAuto) {
    if (load.bytes < kMinBytesForGpu) {
      return executors_on_cpu(load.bytes == 0
                                  ? fmt::format("no element is {}", load.done)
                                  : fmt::format("only {} are {}: not worth a GPU's start",
                                                human_bytes(load.bytes), load.done));
    }
    const Result<double> sampled = predict_cpu_seconds(load);
    if (!sampled) return executors_on_cpu(sampled.error().message);
    by_cpu = *sampled;
    if (by_cpu < options.gpu_start)
      return executors_on_cpu(cpu_forecast_text(load, by_cpu) + ": not worth a GPU's start");
  }
  Gpus gpus = options.gpus == nullptr ? Gpus{{}, "none was looked for", {}} : options.gpus();
  if (options.kind == DeviceKind::kAuto && gpus.found.empty()) return executors_on_cpu(gpus.none);
  SHW_TRY(std::vector<int> taken, choose_gpus(options, gpus));
  if (options.kind == DeviceKind::kCuda)
    return executors_on_gpus(options, gpus, taken, "it was asked for");
  return faster_executors(options, load, by_cpu, gpus, taken);
}

}  // namespace shw
