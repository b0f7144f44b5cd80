// Selects the device that computes a run's elements: the CPU, or a GPU if available. Selected
// before anything is written and named in the result. The bytes are equal on all devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/exec/executor.h"
#include "core/program/program.h"

namespace shw {

struct Gpu {
  int index = 0;
  std::string name;
  std::uint64_t memory = 0;  // in bytes
  std::string id = {};       // globally unique id of the card, if it has one
};

struct Gpus {
  std::vector<Gpu> found;
  std::string none;  // why no GPU is available; empty if one is
  // Opens an executor on one GPU, for one thread.
  std::function<Result<std::unique_ptr<Executor>>(int index)> open;
};

enum class DeviceKind : std::uint8_t { kAuto, kCpu, kCuda };
// After a GPU failure: continue on the CPU, or stop the run so that it can be resumed.
enum class OnDeviceError : std::uint8_t { kCpu, kStop };

inline constexpr int kAnyGpu = -1;

struct DeviceOptions {
  DeviceKind kind = DeviceKind::kAuto;
  int index = kAnyGpu;  // for kCuda
  OnDeviceError on_error = OnDeviceError::kCpu;
  std::function<Gpus()> gpus = {};  // detects GPUs; empty: none
  // Rank on this machine if several processes share it: each takes one GPU, in turn. A single
  // process takes all GPUs, with a thread for each.
  std::optional<int> local_rank = {};
  // kAuto looks for a GPU only if the predicted CPU time exceeds this, in seconds. Starting CUDA
  // and running a sample took 0.5 to 0.9 s on an H100.
  double gpu_start = 1;
};
// Parses "auto", "cpu", "cuda", "cuda:1"; false for anything else.
bool parse_device(std::string_view text, DeviceOptions& options);
std::string to_text(const DeviceOptions& options);

// The device that was used, and why.
struct DeviceUse {
  std::string device = "cpu";  // or "cuda:0", "cuda:0,1"
  std::string why = "no element is made";
  std::string failed;   // the GPU's error if it failed during the run
  DeviceWorks works{};  // GPU time summed over threads: concurrent seconds overlap
};
// The stage with the most time; nullopt if no GPU was used.
std::optional<DeviceStage> slowest(const DeviceWorks& works);
std::string_view name(DeviceStage stage);

struct DeviceState;

// Creates the executors of one run, one per thread. Copies share state.
class Executors {
 public:
  // CPU only.
  Executors();
  // With GPUs: each thread calls `gpu` to open its own executor.
  Executors(std::function<Result<std::unique_ptr<Executor>>()> gpu, OnDeviceError on_error,
            DeviceUse use);
  explicit Executors(DeviceUse cpu);

  std::unique_ptr<Executor> make() const;
  bool has_gpu() const;  // or had one before it failed
  DeviceUse use() const;
  // True if the GPU failed and OnDeviceError::kStop was requested.
  bool has_stopped() const;

 private:
  std::shared_ptr<DeviceState> state_;
};

// Indices of the GPUs that this process may take; an error if there is none.
Result<std::vector<int>> choose_gpus(const DeviceOptions& options, const Gpus& gpus);

// The amount of work, for the choice of a device.
struct DeviceLoad {
  std::uint64_t bytes = 0;
  const char* doing = "making";
  const char* done = "made";
  // Predicts the seconds for one executor by running a sample on it.
  std::function<Result<double>(Executor&)> seconds = {};
};

// `kAuto` selects a GPU only if it is predicted to be faster, and does not look for one
// if there is little work. An error if a GPU was requested explicitly and is not
// available.
Result<Executors> choose_for(const DeviceOptions& options, const DeviceLoad& load);

// `kAuto` selects a GPU only if computing the elements there is predicted to be faster, transfers
// included.
Result<Executors> choose_executors(const DeviceOptions& options, const Program& program);

}  // namespace shw
