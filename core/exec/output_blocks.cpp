#include "core/exec/output_blocks.h"

namespace shw {

OutputBlocks::OutputBlocks(const Program& program, const std::vector<const Checkpoint*>& inputs,
                           const MemoryPlan& shares, MakeScratch make_scratch,
                           const Executors& executors, SourceChecksumVerifier& sums,
                           Progress* progress)
    : program_(program),
      inputs_(inputs),
      limits_(shares.limits),
      decoded_(std::make_shared<DecodedItems>(shares.decoded_bytes, progress)),
      on_disk_(std::make_shared<SpillFiles>(program, inputs, shares.decoded,
                                            std::move(make_scratch), progress)),
      left_(needs_decoded_items(program) ? program.sources.size() : 0),
      workspaces_([this, executors, &sums] {
        return std::make_unique<Workspace>(Workspace{
            SourceOpener(program_, inputs_, decoded_, on_disk_, &sums), executors.make()});
      }),
      progress_(progress) {}

std::uint64_t OutputBlocks::block_count(OutputId output) const {
  return shw::block_count(program_, output, limits_);
}

void OutputBlocks::expect(OutputId output) {
  if (left_.empty()) return;
  for (SourceId source : decoded_sources(program_, output)) {
    ++left_[static_cast<std::size_t>(source)];
    if (on_disk_->has(source)) on_disk_->expect(source);
  }
}

void OutputBlocks::done(OutputId output) {
  if (left_.empty()) return;
  for (SourceId id : decoded_sources(program_, output)) {
    if (--left_[static_cast<std::size_t>(id)] != 0) continue;
    const ProgramSource& source = program_.source(id);
    if (on_disk_->has(id))
      on_disk_->drop(id);
    else if (source.input < inputs_.size())
      decoded_->drop(*inputs_[source.input], ChunkId{source.chunk});
  }
}

Result<WrittenBlocks> OutputBlocks::write(OutputId output, BlockRange range, OutputFile& file,
                                          RemoteSourceData* sent) {
  auto workspace = workspaces_.take();
  return write_blocks(program_, output, range, *workspace, limits_, file, progress_, sent);
}

}  // namespace shw
