// Computes the outputs of a program and writes them, for several threads.
#pragma once

#include <atomic>

#include "core/base/parallel.h"
#include "core/exec/device.h"
#include "core/exec/memory_shares.h"

namespace shw {

class OutputBlocks {
 public:
  // Keeps references to the proved program, its inputs and `sums`. `make_scratch` creates temporary
  // files for the items of MemoryPlan::decoded.
  OutputBlocks(const Program& program, const std::vector<const Checkpoint*>& inputs,
               const MemoryPlan& shares, MakeScratch make_scratch, const Executors& executors,
               SourceChecksumVerifier& sums, Progress* progress);
  OutputBlocks(const OutputBlocks&) = delete;
  OutputBlocks& operator=(const OutputBlocks&) = delete;

  std::uint64_t block_count(OutputId output) const;
  // Announces one part of the output: items decoded for it are kept until done() was called as
  // often. All parts are announced before the first is written.
  void expect(OutputId output);
  void done(OutputId output);
  // Writes blocks of the output to their place in its file.
  Result<WrittenBlocks> write(OutputId output, BlockRange range, OutputFile& file,
                              RemoteSourceData* sent = nullptr);
  // Workspace of a thread that reads and computes for other ranks.
  Pool<Workspace>::Lease workspace() { return workspaces_.take(); }
  const SlabLimits& limits() const { return limits_; }

 private:
  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  SlabLimits limits_;
  const std::shared_ptr<DecodedItems> decoded_;
  const std::shared_ptr<SpillFiles> on_disk_;
  // by source: the number of parts that still read it; empty if nothing is decoded
  std::vector<std::atomic<std::uint32_t>> left_;
  Pool<Workspace> workspaces_;
  Progress* progress_;
};

}  // namespace shw
