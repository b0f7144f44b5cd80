#include "core/exec/payloads.h"

namespace shw {

Payloads::Payloads(const Program& program, const std::vector<const Checkpoint*>& inputs,
                   const MemoryShares& shares, const Executors& executors, Progress* progress)
    : program_(program),
      limits_(shares.limits),
      workspaces_([&program, inputs, executors,
                   decoded = std::make_shared<DecodedItems>(shares.decoded_bytes)] {
        return std::make_unique<Workspace>(
            Workspace{Storages(program, inputs, decoded), executors.make()});
      }),
      progress_(progress) {}

std::uint64_t Payloads::block_count(OutputId output) const {
  return shw::block_count(program_, output, limits_);
}

Result<WrittenBlocks> Payloads::write(OutputId output, BlockRange range, OutputFile& file,
                                      SentParts* sent) {
  auto workspace = workspaces_.take();
  return write_blocks(program_, output, range, *workspace, limits_, file, progress_, sent);
}

}  // namespace shw
