// The outputs of a program, each made where a writer asks for it, from several threads at once.
#pragma once

#include "core/base/parallel.h"
#include "core/exec/write_output.h"

namespace shw {

class Payloads {
 public:
  // Refers to the program, which is proved, and to its inputs.
  Payloads(const Program& program, std::vector<const Checkpoint*> inputs, Progress* progress);
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  // Into its file, where the program says; returns the CRC-32.
  Result<std::uint32_t> write(OutputId output, OutputFile& file);

 private:
  const Program& program_;
  Pool<Workspace> workspaces_;
  Progress* progress_;
};

}  // namespace shw
