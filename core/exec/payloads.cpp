#include "core/exec/payloads.h"

namespace shw {

Payloads::Payloads(const Program& program, std::vector<const Checkpoint*> inputs,
                   Progress* progress)
    : program_(program),
      workspaces_([&program, inputs = std::move(inputs)] {
        return std::make_unique<Workspace>(
            Workspace{Storages(program, inputs), cpu_executor(), {}, {}, {}});
      }),
      progress_(progress) {}

Result<std::uint32_t> Payloads::write(OutputId output, OutputFile& file) {
  auto workspace = workspaces_.take();
  SHW_TRY(WrittenOutput written,
          write_output(program_, output, *workspace, Limits{}, file, progress_));
  return written.crc;
}

}  // namespace shw
