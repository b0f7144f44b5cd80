#include "core/exec/device.h"

#include <fmt/core.h>

#include <atomic>
#include <charconv>
#include <mutex>

#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/exec/forecast.h"

namespace shw {

// What the threads of a run know of its device.
struct DeviceState {
  std::function<Result<std::unique_ptr<Executor>>()> gpu;  // empty: the CPU
  OnDeviceError on_error = OnDeviceError::kCpu;
  std::atomic<bool> has_failed{false};
  mutable std::mutex mutex;
  DeviceUse use;  // under the mutex

  void note_failure(const Error& error) {
    std::lock_guard lock(mutex);
    if (use.failed.empty()) use.failed = error.message;
    has_failed.store(true, std::memory_order_relaxed);
  }
};

namespace {

// Below this a GPU is not looked for: asking for one takes longer than making so little.
constexpr std::uint64_t kWorthLooking = std::uint64_t{256} << 20;

// Elements that a program computes or turns; those that it only copies no GPU makes sooner.
std::uint64_t bytes_made(const Program& program) {
  std::uint64_t bytes = 0;
  for (const ProgramJob& job : program.jobs)
    bytes += static_cast<std::uint64_t>(volume(program.sizes(job)).value_or(0)) * size_of(job.to);
  return bytes;
}

Result<int> index_of_gpu(const DeviceWish& wish, const Gpus& gpus) {
  if (!gpus.none.empty() || gpus.found.empty()) {
    return fail(ErrorKind::kIo,
                "no GPU can be taken: " + (gpus.none.empty() ? "none was found" : gpus.none), {},
                "repeat this with --device cpu");
  }
  std::string there;
  for (const Gpu& gpu : gpus.found) {
    if (gpu.index == wish.index) return gpu.index;
    there += fmt::format("{}cuda:{} ({})", there.empty() ? "" : ", ", gpu.index, gpu.name);
  }
  return fail(ErrorKind::kIo, fmt::format("there is no GPU {}", wish.index), {},
              "there is " + there);
}

Executors on_gpu(const DeviceWish& wish, const Gpus& gpus, int index, std::string why) {
  return {[open = gpus.open, index] { return open(index); },
          wish.on_error,
          {fmt::format("cuda:{}", index), std::move(why), {}}};
}

Executors on_cpu(std::string why) {
  return Executors(DeviceUse{"cpu", std::move(why), {}});
}

// What is predicted to make the elements first.
Executors sooner(const DeviceWish& wish, const Program& program, const Gpus& gpus) {
  const int index = gpus.found.front().index;
  auto gpu = gpus.open(index);
  if (!gpu) return on_cpu("the GPU did not start: " + gpu.error().message);
  auto cpu = cpu_executor();
  const auto here = seconds_to_make(program, *cpu), there = seconds_to_make(program, **gpu);
  if (!here) return on_cpu(here.error().message);
  if (!there) return on_cpu("the GPU failed in a sample: " + there.error().message);
  // Threads share the way to the GPU and back.
  const double by_cpu = here->make / static_cast<double>(worker_count()), by_gpu = there->make;
  std::string why =
      fmt::format("making is predicted to take {} on {} and {} on {}", human_seconds(by_cpu),
                  plural(worker_count(), "thread"), human_seconds(by_gpu), gpus.found.front().name);
  return by_gpu < by_cpu ? on_gpu(wish, gpus, index, std::move(why)) : on_cpu(std::move(why));
}

}  // namespace

// Takes the GPU's executor when it is first needed, and the CPU's once that has failed.
class DeviceExecutor final : public Executor {
 public:
  explicit DeviceExecutor(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}

  Result<Fingerprint> run(const SlabWork& work) override {
    if (state_->gpu == nullptr || state_->has_failed.load(std::memory_order_relaxed))
      return run_after_failure(work);
    auto done = run_on_gpu(work);
    if (done) return done;
    state_->note_failure(done.error());
    gpu_.reset();
    return state_->on_error == OnDeviceError::kStop ? done : on_cpu(work);
  }

 private:
  Result<Fingerprint> run_on_gpu(const SlabWork& work) {
    if (gpu_ == nullptr) {
      SHW_TRY(gpu_, state_->gpu());
    }
    return gpu_->run(work);
  }
  // Whatever the GPU had made of the slab is made again.
  Result<Fingerprint> on_cpu(const SlabWork& work) {
    if (cpu_ == nullptr) cpu_ = cpu_executor();
    return cpu_->run(work);
  }
  Result<Fingerprint> run_after_failure(const SlabWork& work) {
    if (state_->gpu == nullptr || state_->on_error == OnDeviceError::kCpu) return on_cpu(work);
    std::lock_guard lock(state_->mutex);
    return fail(ErrorKind::kIo, state_->use.failed);
  }

  std::shared_ptr<DeviceState> state_;
  std::unique_ptr<Executor> gpu_, cpu_;
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

bool Executors::has_stopped() const {
  return state_->has_failed && state_->on_error == OnDeviceError::kStop;
}

bool parse_device(std::string_view text, DeviceWish& wish) {
  wish.index = 0;
  wish.kind = text == "auto"  ? DeviceKind::kAuto
              : text == "cpu" ? DeviceKind::kCpu
                              : DeviceKind::kCuda;
  if (wish.kind != DeviceKind::kCuda || text == "cuda") return true;
  constexpr std::string_view kPrefix = "cuda:";
  if (text.substr(0, kPrefix.size()) != kPrefix) return false;
  std::string_view number = text.substr(kPrefix.size());
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), wish.index);
  return error == std::errc{} && end == number.data() + number.size() && wish.index >= 0;
}

Result<Executors> choose_executors(const DeviceWish& wish, const Program& program) {
  if (wish.kind == DeviceKind::kCpu) return on_cpu("it was asked for");
  const std::uint64_t made = bytes_made(program);
  if (wish.kind == DeviceKind::kAuto && made < kWorthLooking) {
    return on_cpu(made == 0 ? "no element is made"
                            : "only " + human_bytes(made) + " are made: not worth a GPU's start");
  }
  Gpus gpus = wish.gpus == nullptr ? Gpus{{}, "none was looked for", {}} : wish.gpus();
  if (wish.kind == DeviceKind::kCuda) {
    SHW_TRY(int index, index_of_gpu(wish, gpus));
    return on_gpu(wish, gpus, index, "it was asked for");
  }
  if (gpus.found.empty()) return on_cpu(gpus.none);
  return sooner(wish, program, gpus);
}

}  // namespace shw
