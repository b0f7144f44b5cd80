// The outputs of a program, made where a writer asks for them, from several threads at once.
#pragma once

#include <atomic>

#include "core/base/parallel.h"
#include "core/exec/device.h"
#include "core/exec/memory_shares.h"

namespace shw {

class Payloads {
 public:
  // Refers to the program, which is proved, to its inputs, and to `sums`. `make_scratch` makes
  // files for what MemoryShares::decoded puts on the disk.
  Payloads(const Program& program, const std::vector<const Checkpoint*>& inputs,
           const MemoryShares& shares, MakeScratch make_scratch, const Executors& executors,
           SourceSums& sums, Progress* progress);
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  std::uint64_t block_count(OutputId output) const;
  // A part of the output will be written, here or by who is sent what it needs: what it has to
  // decode stays until as many are done. All are expected before the first is written.
  void expect(OutputId output);
  void done(OutputId output);
  // Into its file, where the program says.
  Result<WrittenBlocks> write(OutputId output, BlockRange range, OutputFile& file,
                              SentParts* sent = nullptr);
  // What a thread reads and makes with, for one that does so for others.
  Pool<Workspace>::Lease workspace() { return workspaces_.take(); }
  const Limits& limits() const { return limits_; }

 private:
  const Program& program_;
  const std::vector<const Checkpoint*> inputs_;
  Limits limits_;
  const std::shared_ptr<DecodedItems> decoded_;
  const std::shared_ptr<ScratchItems> on_disk_;
  // By source, the parts that are still to read it; none where nothing has to be decoded.
  std::vector<std::atomic<std::uint32_t>> left_;
  Pool<Workspace> workspaces_;
  Progress* progress_;
};

}  // namespace shw
