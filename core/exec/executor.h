// Runs tile jobs on what lies in memory. Every executor gives the same bytes for the same jobs.
#pragma once

#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/program/tile_job.h"

namespace shw {

class Executor {
 public:
  virtual ~Executor() = default;
  // The jobs come from a proved program: they stay inside of the slabs and meet nowhere in `out`.
  virtual Status run(std::span<const std::byte> in, std::span<const TileJob> jobs,
                     std::span<std::byte> out) = 0;
};

// On one core of the CPU.
std::unique_ptr<Executor> cpu_executor();

}  // namespace shw
