// Carries out the jobs of one output, block by block: what a block needs is read, an executor makes
// it, and it is written. Memory follows the limits, never the output or its largest source.
#pragma once

#include "core/base/progress.h"
#include "core/exec/executor.h"
#include "core/exec/storages.h"
#include "core/io/sink.h"

namespace shw {

struct Limits {
  // Of what is read, and of what is made, at a time. 64 MiB: starting a block costs nothing beside
  // moving it, also for a GPU behind PCIe (spec/gpu.md B5).
  std::uint64_t slab_bytes = std::uint64_t{64} << 20;
};

struct WrittenOutput {
  std::uint32_t crc = 0;         // CRC-32 of the payload
  std::uint64_t peak_bytes = 0;  // the most that both slabs took together
};

// Appends the payload to `sink`. The program is proved. Zeros that fill a block become a hole.
Result<WrittenOutput> write_output(const Program& program, OutputId output, Storages& storages,
                                   Executor& executor, const Limits& limits, ByteSink& sink,
                                   Progress* progress);

}  // namespace shw
