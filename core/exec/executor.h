// Runs tile jobs on what lies in memory. Every executor gives the same bytes, and the same
// fingerprint, for the same jobs.
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

// Elements side by side whose numbers are to be counted.
struct NumberJob {
  Dtype dtype = Dtype::kUnknown;
  std::uint64_t begin = 0;  // byte of the slab
  std::uint64_t count = 0;  // elements
  StatisticsSums* sums = nullptr;
};

// All that becomes of a slab that was read. The jobs come from a proved program: they stay inside
// of the slabs and meet nowhere in `out`.
struct SlabWork {
  std::span<const std::byte> in;
  std::span<const TileJob> tiles;  // from `in` to `out`
  // What is to be added up of `in`, each element as it will be written: the targets of these jobs
  // are indices in the tensor and count elements. They know nothing of the tiles: a run is proved
  // by two ways that lead to one number.
  std::span<const TileJob> elements;
  std::span<std::byte> out;
  // What is to be counted of `in`, as it lies there. Their sums grow where the run succeeds, and
  // are as they were where it fails.
  std::span<const NumberJob> numbers = {};
};

// What a device did of it: a slab's way there, what is made of it, and the way back.
enum class DeviceStage : std::uint8_t { kSend, kKernels, kFetch };
inline constexpr std::size_t kDeviceStages = 3;
struct DeviceWork {
  std::uint64_t bytes = 0;
  double seconds = 0;  // of each slab from begin to end, added up: others may lie between
};
using DeviceWorks = std::array<DeviceWork, kDeviceStages>;

class Executor {
 public:
  virtual ~Executor() = default;
  // The fingerprint of `work.elements`.
  virtual Result<Fingerprint> run(const SlabWork& work) = 0;

  // The same in two steps, so that something else can be done meanwhile. What `work` refers to is
  // left alone until finish() has answered for it, which answers for the oldest that was begun. As
  // they stand here begin() does all of it.
  virtual void begin(const SlabWork& work) { done_ = run(work); }
  virtual Result<Fingerprint> finish() { return std::move(done_); }
  // How many may be begun and not finished.
  virtual std::size_t most_under_way() { return 1; }
  // What slabs should lie in; null: anywhere.
  virtual const SlabMemory* memory() { return nullptr; }
  // Since it was last asked.
  virtual DeviceWorks take_works() { return {}; }

 private:
  Result<Fingerprint> done_;
};

// On one core of the CPU.
std::unique_ptr<Executor> cpu_executor();

}  // namespace shw
