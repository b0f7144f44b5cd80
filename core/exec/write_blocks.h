// Carries out the jobs of one output, block by block: what a block needs is read, an executor makes
// it, and it is written. Memory follows the limits, never the output or its largest source.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/exec/executor.h"
#include "core/exec/slab.h"
#include "core/exec/storages.h"
#include "core/io/sink.h"

namespace shw {

struct Limits {
  // Of what is read, and of what is made, at a time. Large enough that starting a block costs
  // nothing beside moving it, small enough to stay in a core's cache between reading and writing.
  std::uint64_t slab_bytes = std::uint64_t{8} << 20;
};

struct WrittenOutput {
  std::uint32_t crc = 0;         // CRC-32 of the payload
  std::uint64_t peak_bytes = 0;  // the most that both slabs took together
};

// What one thread needs to carry out jobs: kept from output to output, so that nothing is allocated
// in the loop.
struct Workspace {
  Storages storages;
  std::unique_ptr<Executor> executor;
  Slab in, out;
  std::vector<TileJob> jobs;
};

// Writes the payload where the program says that it lies in its file. The program is proved. Zeros
// that fill a block become a hole.
Result<WrittenOutput> write_output(const Program& program, OutputId output, Workspace& workspace,
                                   const Limits& limits, OutputFile& file, Progress* progress);

}  // namespace shw
