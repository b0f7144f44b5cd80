// Carries out the jobs of an output, block by block: what a block needs is read, an executor makes
// it, and it is written. A large output is dealt to several threads in ranges of blocks. Memory
// follows the limits, never the output or its largest source.
#pragma once

#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/block_cut.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/executor.h"
#include "core/exec/slab.h"
#include "core/exec/storages.h"
#include "core/io/sink.h"

namespace shw {

// What became of a range of blocks: 40 bytes, there are as many as tiles.
struct WrittenBlocks {
  // Of blocks that follow each other in the output: the CRC-32 of their bytes, `length` of them.
  // Else: what they change in the CRC-32 of as many zeros as the output has bytes.
  std::uint32_t crc = 0;
  bool in_order = true;
  std::uint64_t length = 0;
  // Of the elements as they were read, each at the index that the program gives it in its tensor:
  // what the disk must hold afterwards, told by nobody who wrote it.
  ElementSums elements{};
};

// What one thread needs to carry out jobs: kept from output to output, so that nothing is allocated
// in the loop.
struct SlabPair {
  Slab in, out;
  std::vector<TileJob> jobs;
};
struct Workspace {
  Storages storages;
  std::unique_ptr<Executor> executor;
  std::vector<SlabPair> pairs = {};  // as many as are under way at a time
  std::uint64_t peak_bytes = 0;      // the most that blocks under way took together
};

// What other workers have read for the blocks that follow, job by job in the blocks' order.
class SentParts {
 public:
  virtual ~SentParts() = default;
  // Fills `to` with the bytes of a job's part, and has added its elements up already; false where
  // this worker reads the source itself.
  virtual Result<bool> take(SourceId source, std::span<std::byte> to) = 0;
  // After the last block: the sums of all that was taken. An error where more had come.
  virtual Result<ElementSums> finish() = 0;
};

// Writes blocks of the payload where the program says that they lie in its file. The program is
// proved. Zeros that fill a block become a hole. Several threads may each write a range of their
// own.
Result<WrittenBlocks> write_blocks(const Program& program, OutputId output, BlockRange range,
                                   Workspace& workspace, const Limits& limits, OutputFile& file,
                                   Progress* progress, SentParts* sent = nullptr);

// CRC-32 of a payload of `length` bytes, of ranges that make it up, in order.
std::uint32_t crc_of_all(std::span<const WrittenBlocks> ranges, std::uint64_t length);

}  // namespace shw
