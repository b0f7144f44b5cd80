// Executes the jobs of an output block by block: reads the sources of a block, computes it and
// writes it. A large output is divided among threads in ranges of blocks. Memory depends on the
// limits only, not on the size of outputs or sources.
#pragma once

#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/block_cut.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/executor.h"
#include "core/exec/slab.h"
#include "core/exec/source_opener.h"
#include "core/io/sink.h"

namespace shw {

// Result for a range of blocks; 40 bytes, at least one per chunk.
struct WrittenBlocks {
  // If the blocks are contiguous in the output: CRC-32 of their `length` bytes. Otherwise the
  // change that they make to the CRC-32 of the output filled with zeros.
  std::uint32_t crc = 0;
  bool in_order = true;
  std::uint64_t length = 0;
  // Checksums of the elements as read, each at its index in the tensor: the expected content of the
  // file, computed independently of the written bytes.
  ElementSums elements{};
};

// Buffers of one thread, reused for all outputs so that the loop does not
// allocate.
struct SlabPair {
  Slab in, out;
  std::vector<TileJob> jobs;
};
struct Workspace {
  SourceOpener storages;
  std::unique_ptr<Executor> executor;
  std::vector<SlabPair> pairs = {};  // as many as are in flight at a time
  std::uint64_t peak_bytes = 0;      // maximum bytes of blocks in flight
};

// Source data sent by other ranks for the following blocks, job by job in block order.
class RemoteSourceData {
 public:
  virtual ~RemoteSourceData() = default;
  // Fills `to` with the bytes of a job's part, whose checksums are already included; false if this
  // rank reads the source itself.
  virtual Result<bool> take(SourceId source, std::span<std::byte> to) = 0;
  // After the last block: the checksums of all data taken. An error if there is data left.
  virtual Result<ElementSums> finish() = 0;
};

// Writes a range of blocks of the payload to its place in the file. The program
// must be proved. Blocks of zeros become holes. Thread-safe for different
// ranges.
Result<WrittenBlocks> write_blocks(const Program& program, OutputId output, BlockRange range,
                                   Workspace& workspace, const SlabLimits& limits, OutputFile& file,
                                   Progress* progress, RemoteSourceData* sent = nullptr);

// CRC-32 of a payload of `length` bytes, combined from its ranges in order.
std::uint32_t combine_range_crcs(std::span<const WrittenBlocks> ranges, std::uint64_t length);

}  // namespace shw
