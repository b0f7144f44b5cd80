// The outputs of a program, made where a writer asks for them, from several threads at once.
#pragma once

#include "core/base/parallel.h"
#include "core/exec/device.h"
#include "core/exec/memory_shares.h"

namespace shw {

class Payloads {
 public:
  // Refers to the program, which is proved, and to its inputs.
  Payloads(const Program& program, const std::vector<const Checkpoint*>& inputs,
           const MemoryShares& shares, const Executors& executors, Progress* progress);
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  std::uint64_t block_count(OutputId output) const;
  // Into its file, where the program says.
  Result<WrittenBlocks> write(OutputId output, BlockRange range, OutputFile& file,
                              SentParts* sent = nullptr);
  // What a thread reads and makes with, for one that does so for others.
  Pool<Workspace>::Lease workspace() { return workspaces_.take(); }
  const Limits& limits() const { return limits_; }

 private:
  const Program& program_;
  Limits limits_;
  Pool<Workspace> workspaces_;
  Progress* progress_;
};

}  // namespace shw
