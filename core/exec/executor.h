// Runs tile jobs on slabs in memory. Every executor gives equal bytes and equal fingerprints for
// equal jobs.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/exec/slab.h"
#include "core/program/tile_job.h"
#include "core/tensor/fingerprint.h"

namespace shw {

struct StatisticsSums;

// A run of contiguous elements to be counted.
struct StatisticsJob {
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t begin = 0;  // byte offset in the slab
  std::uint64_t count = 0;  // in elements
  StatisticsSums* sums = nullptr;
};

// All work on one input slab. The jobs come from a proved program: they stay inside the slabs and
// do not overlap in `out`.
struct SlabWork {
  std::span<const std::byte> in;
  std::span<const TileJob> tiles;  // copies and conversions from `in` to `out`
  // Jobs for the fingerprint of `in`, each element with its converted value; their targets are
  // element indices in the tensor. They are derived independently of `tiles`, so that the proof
  // compares two computations of one number.
  std::span<const TileJob> elements;
  std::span<std::byte> out;
  // Runs of `in` to be counted as they are. The sums are updated only if the run
  // succeeds.
  std::span<const StatisticsJob> numbers = {};
};

// Stages of a device: transfer of a slab to it, kernels, and transfer back.
enum class DeviceStage : std::uint8_t { kSend, kKernels, kFetch };
inline constexpr std::size_t kDeviceStages = 3;
struct DeviceWork {
  std::uint64_t bytes = 0;
  double seconds = 0;  // summed from begin to end of each slab; slabs may overlap
};
using DeviceWorks = std::array<DeviceWork, kDeviceStages>;

class Executor {
 public:
  virtual ~Executor() = default;
  // Returns the fingerprint of `work.elements`.
  virtual Result<Fingerprint> run(const SlabWork& work) = 0;

  // Asynchronous form: begin() starts the work, finish() completes the oldest started one. Whatever
  // `work` refers to must stay unchanged until then. The default implementation does everything in
  // begin().
  virtual void begin(const SlabWork& work) { done_ = run(work); }
  virtual Result<Fingerprint> finish() { return std::move(done_); }
  // How many works may be started and unfinished.
  virtual std::size_t max_in_flight() { return 1; }
  // Preferred memory for slabs; null: any.
  virtual const SlabMemory* memory() { return nullptr; }
  // Device time since the last call.
  virtual DeviceWorks collect_device_times() { return {}; }

 private:
  Result<Fingerprint> done_;
};

// Executor on one CPU core.
std::unique_ptr<Executor> cpu_executor();

}  // namespace shw
