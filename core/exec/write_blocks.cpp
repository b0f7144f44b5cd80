#include "core/exec/write_blocks.h"

#include <algorithm>
#include <cstring>

#include "core/exec/job_part.h"
#include "core/formats/common/crc32.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Below this a hole saves nothing: zeros are written.
constexpr std::size_t kHole = 1 << 20;
// Written at once: files that two threads write to are locked as often as they are written to.
constexpr std::size_t kWritten = 8 << 20;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// One block on its way: its source bytes, its elements, and what turns the one into the other.
struct BlockWork {
  const Program& program;
  Workspace& space;
  Box block;
  std::span<std::byte> in, out;
  Fingerprint& elements;  // WrittenBlocks::elements
  SentParts* sent;
  StageWorks* stages;
  std::size_t held = 0;  // of `in`

  std::uint64_t bytes() const { return held + out.size(); }
};

// Elements that lie in the source as they will lie in the block go there at once.
bool lie_alike(ExtentsView sizes, const PackedBox& box, const Extents& target) {
  if (box.offset != 0) return false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && box.strides[d] != target[d]) return false;
  }
  return true;
}

Status read_job(const JobPart& part, BlockWork& work) {
  const Program& program = work.program;
  SHW_TRY(TileJob tile, tile_of(part.job, work.space.storages));
  const std::size_t held = work.held, length = part.length();
  const Extents target = byte_strides(work.block.sizes, size_of(part.job.to));
  std::int64_t begin = 0;
  for (std::size_t d = 0; d < target.size(); ++d)
    begin += (part.common.offsets[d] - work.block.offsets[d]) * target[d];
  if (part.is_read()) {
    bool alike = part.job.op == ElementOp::kCopy && lie_alike(part.common.sizes, part.box, target);
    auto to = alike ? work.out.subspan(static_cast<std::size_t>(begin), length)
                    : work.in.subspan(held, length);
    bool is_here = false;
    if (work.sent != nullptr) {
      SHW_TRY(is_here, work.sent->take(part.job.source, to));
    }
    if (!is_here)
      SHW_CHECK(
          read_part(program, part, tile, work.space.storages, to, work.elements, work.stages));
    if (alike) return {};
    work.held += length;
  } else {
    add_part(program, part, tile, nullptr, work.elements);
  }
  auto pair = pair_of(part.common.sizes, part.box.strides,
                      static_cast<std::int64_t>(held) + part.box.offset, target, begin);
  each_canonical_pair(pair, [&](const LayoutPair& layouts) {
    tile.layouts = layouts;
    work.space.jobs.push_back(tile);
  });
  return {};
}

// Blocks of a payload on their way into its file, and their CRC.
class PayloadPart {
 public:
  PayloadPart(OutputFile& file, const ProgramOutput& out, ExtentsView sizes, bool in_order,
              const Progress* progress)
      : file_(file),
        progress_(progress),
        begin_(out.offset),
        strides_(byte_strides(sizes, size_of(out.dtype))),
        sizes_(copy_of(sizes)),
        element_(size_of(out.dtype)),
        change_(out.length) {
    written_.in_order = in_order;
  }

  Status put(const Box& block, BytesView bytes) {
    written_.length += bytes.size();
    return written_.in_order ? append(block, bytes) : scatter(block, bytes);
  }
  WrittenBlocks written() const {
    WrittenBlocks written = written_;
    if (!written.in_order) written.crc = change_.value();
    return written;
  }

 private:
  std::uint64_t offset_of(const Box& block) const {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < strides_.size(); ++d) at += block.offsets[d] * strides_[d];
    return static_cast<std::uint64_t>(at);
  }

  Status append(const Box& block, BytesView bytes) {
    written_.crc = crc32_of(bytes, written_.crc);
    // Piece by piece: holes are found, and whoever wants to stop it does not wait for a slow disk.
    for (std::uint64_t at = begin_ + offset_of(block); !bytes.empty();) {
      if (is_cancelled(progress_)) return cancelled_error();
      BytesView piece = bytes.first(std::min(bytes.size(), kWritten));
      if (piece.size() < kHole || !is_zero(piece)) SHW_CHECK(file_.write_at(at, piece));
      at += piece.size();
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }

  Status scatter(const Box& block, BytesView bytes) {
    std::size_t run = element_, outer = sizes_.size();
    while (outer > 0) {
      --outer;
      run *= static_cast<std::size_t>(block.sizes[outer]);
      if (block.sizes[outer] != sizes_[outer]) break;
    }
    Blocks rows{
        Extents(block.sizes.begin(), block.sizes.begin() + static_cast<std::ptrdiff_t>(outer)),
        Extents(outer, 1)};
    for (std::size_t done = 0; rows.next(); done += run) {
      std::uint64_t at = offset_of(block);
      for (std::size_t d = 0; d < outer; ++d)
        at += static_cast<std::uint64_t>(rows.block.offsets[d] * strides_[d]);
      SHW_CHECK(put_run(at, bytes.subspan(done, run)));
    }
    return {};
  }

  Status put_run(std::uint64_t at, BytesView run) {
    if (is_zero(run)) return {};
    change_.add(at, run);
    return file_.write_at(begin_ + at, run);
  }

  OutputFile& file_;
  const Progress* progress_;
  std::uint64_t begin_;
  Extents strides_, sizes_;
  std::size_t element_;
  CrcChange change_;  // of blocks that do not follow each other
  WrittenBlocks written_;
};

Status fill_block(JobRange jobs, BlockWork& work) {
  work.space.jobs.clear();
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = work.program.jobs[j];
    auto part = part_of(work.program, job, work.block);
    if (part) SHW_CHECK(read_job(*part, work));
  }
  StageClock clock(work.stages, Stage::kMake, work.out.size());
  if (work.space.jobs.empty()) return {};
  SHW_TRY([[maybe_unused]] Fingerprint none,
          work.space.executor->run({work.in.first(work.held), work.space.jobs, {}, work.out}));
  return {};
}

}  // namespace

Result<WrittenBlocks> write_blocks(const Program& program, OutputId output, BlockRange range,
                                   Workspace& workspace, const Limits& limits, OutputFile& file,
                                   Progress* progress, SentParts* sent) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  if (is_zeros(program, jobs))
    return WrittenBlocks{crc32_of_zeros(0, out.length), true, out.length, 0, {}};
  ExtentsView sizes = program.sizes(out);
  BlockCut cut = cut_of(program, output, limits);
  PayloadPart part(file, out, sizes, cut.in_order, progress);
  std::uint64_t peak = 0;
  Fingerprint elements;
  std::size_t read_width = widest(program, jobs);
  Blocks blocks{copy_of(sizes), cut.block};
  blocks.go_to(range.first);
  for (std::uint64_t i = range.first; i < range.last && blocks.next(); ++i) {
    if (is_cancelled(progress)) return cancelled_error();
    auto count = static_cast<std::size_t>(volume(blocks.block.sizes).value_or(0));
    BlockWork work{program,
                   workspace,
                   blocks.block,
                   workspace.in.room(count * read_width),
                   workspace.out.room(count * size_of(out.dtype)),
                   elements,
                   sent,
                   stages_of(progress)};
    SHW_CHECK(fill_block(jobs, work));
    peak = std::max<std::uint64_t>(peak, work.bytes());
    StageClock clock(stages_of(progress), Stage::kWrite, work.out.size());
    SHW_CHECK(part.put(blocks.block, work.out));
    if (progress != nullptr) progress->add(work.out.size());
  }
  WrittenBlocks written = part.written();
  written.peak_bytes = peak;
  written.elements = elements;
  if (sent != nullptr) {
    SHW_TRY(Fingerprint of_others, sent->finish());
    written.elements += of_others;
  }
  return written;
}

std::uint32_t crc_of_all(std::span<const WrittenBlocks> ranges, std::uint64_t length) {
  bool in_order = std::all_of(ranges.begin(), ranges.end(),
                              [](const WrittenBlocks& range) { return range.in_order; });
  std::uint32_t crc = in_order ? 0 : crc32_of_zeros(0, length);
  for (const WrittenBlocks& range : ranges)
    crc = in_order ? crc32_joined(crc, range.crc, range.length) : crc ^ range.crc;
  return crc;
}

}  // namespace shw
