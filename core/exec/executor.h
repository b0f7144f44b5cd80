// Runs tile jobs on what lies in memory. Every executor gives the same bytes, and the same
// fingerprint, for the same jobs.
#pragma once

#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/program/tile_job.h"
#include "core/tensor/fingerprint.h"

namespace shw {

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
};

class Executor {
 public:
  virtual ~Executor() = default;
  // The fingerprint of `work.elements`.
  virtual Result<Fingerprint> run(const SlabWork& work) = 0;
};

// On one core of the CPU.
std::unique_ptr<Executor> cpu_executor();

}  // namespace shw
