// What makes the elements of a run: the CPU, or a GPU where there is one. Chosen before anything is
// written, and said in the answer. The bytes are the same either way.
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
  std::uint64_t memory = 0;  // bytes
  std::string id = {};       // of this one card in all the world, where it has one
};

struct Gpus {
  std::vector<Gpu> found;
  std::string none;  // why there is none; empty where there is one
  // An executor on one of them, for one thread.
  std::function<Result<std::unique_ptr<Executor>>(int index)> open;
};

enum class DeviceKind : std::uint8_t { kAuto, kCpu, kCuda };
// Where a GPU fails under way: the CPU goes on, or the run stops and can be gone on with (resume).
enum class OnDeviceError : std::uint8_t { kCpu, kStop };

inline constexpr int kAnyGpu = -1;

struct DeviceWish {
  DeviceKind kind = DeviceKind::kAuto;
  int index = kAnyGpu;  // of kCuda
  OnDeviceError on_error = OnDeviceError::kCpu;
  std::function<Gpus()> gpus = {};  // looks for them; empty: there are none
  // Of a process that is one of several on its machine: its number there. Each takes one GPU, in
  // turn; one that is alone there takes all of them, a thread each.
  std::optional<int> local_rank = {};
  // kAuto looks for a GPU only where the CPU is predicted to take more seconds than this. To start
  // CUDA and to take a sample took 0.5 s to 0.9 s on an H100.
  double gpu_start = 1;
};
// "auto", "cpu", "cuda", "cuda:1"; false where it is none of these.
bool parse_device(std::string_view text, DeviceWish& wish);
std::string to_text(const DeviceWish& wish);

// What became of a wish.
struct DeviceUse {
  std::string device = "cpu";  // or "cuda:0", "cuda:0,1"
  std::string why = "no element is made";
  std::string failed;   // what a GPU answered when it failed under way; empty: none did
  DeviceWorks works{};  // of a GPU, of all threads: where several are at once, seconds overlap
};
// The stage that took longest; nothing where no GPU did anything.
std::optional<DeviceStage> slowest(const DeviceWorks& works);
std::string_view name(DeviceStage stage);

struct DeviceState;

// Executors of one run, one a thread. A copy is of the same run.
class Executors {
 public:
  // Of the CPU alone.
  Executors();
  // The GPU's. `gpu` is called by every thread for one of its own.
  Executors(std::function<Result<std::unique_ptr<Executor>>()> gpu, OnDeviceError on_error,
            DeviceUse use);
  explicit Executors(DeviceUse cpu);

  std::unique_ptr<Executor> make() const;
  bool has_gpu() const;  // or had, before it failed
  DeviceUse use() const;
  // The GPU failed, and nobody was to go on without it.
  bool has_stopped() const;

 private:
  std::shared_ptr<DeviceState> state_;
};

// Those that a process may take, by their index; an error in words where there is none.
Result<std::vector<int>> gpus_to_take(const DeviceWish& wish, const Gpus& gpus);

// What there is to do, for whoever chooses where it is done.
struct DeviceLoad {
  std::uint64_t bytes = 0;
  const char* doing = "making";
  const char* done = "made";
  // Predicted for one executor, from a sample that it does.
  std::function<Result<double>(Executor&)> seconds = {};
};

// `kAuto` takes a GPU only where the load is predicted to take less time there, and does not even
// look for one where there is little to do. An error where a GPU was asked for by name and is not
// there.
Result<Executors> choose_for(const DeviceWish& wish, const DeviceLoad& load);

// `kAuto` takes a GPU only where making the elements is predicted to take less time there, bytes
// there and back included.
Result<Executors> choose_executors(const DeviceWish& wish, const Program& program);

}  // namespace shw
