#include "core/exec/write_blocks.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/exec/job_part.h"
#include "core/formats/zip/crc32.h"
#include "core/io/copy_range.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Shorter runs of zeros are written, because a hole would save nothing.
constexpr std::size_t kHole = 1 << 20;
// Bytes per write call: each call locks a file that several threads write.
constexpr std::size_t kWritten = 8 << 20;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// A block in flight: its source bytes, its elements and the conversion.
struct BlockWork {
  const Program& program;
  Workspace& space;
  std::vector<TileJob>& jobs;
  Box block;
  std::span<std::byte> in, out;
  ElementSums& elements;  // WrittenBlocks::elements
  RemoteSourceData* sent;
  StageUsages* stages;
  std::size_t held = 0;  // bytes used of `in`
  // Set if the source bytes are one run in output order, so that they can be shared.
  std::shared_ptr<const ByteSource> file = nullptr;
  std::uint64_t begin = 0;
  std::optional<std::uint32_t> crc = {};  // CRC of all of `out` if already known

  std::uint64_t bytes() const { return held + out.size(); }
};

// True if the elements have the same order in source and block, so they are read in place.
bool is_in_block_order(ExtentsView sizes, const PackedBox& box, const Extents& target) {
  if (box.offset != 0) return false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && box.strides[d] != target[d]) return false;
  }
  return true;
}

// Checks whether the block is one run of a source file.
Status find_run(const JobPart& part, BlockWork& work) {
  const auto begin = contiguous_source_offset(work.program, part);
  if (!begin || !same(part.common.sizes, work.block.sizes)) return {};
  SHW_TRY(work.file, work.space.storages.open_file(part.job.source));
  work.begin = *begin;
  return {};
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
    bool alike =
        part.job.op == ElementOp::kCopy && is_in_block_order(part.common.sizes, part.box, target);
    auto to = alike ? work.out.subspan(static_cast<std::size_t>(begin), length)
                    : work.in.subspan(held, length);
    bool is_here = false;
    if (work.sent != nullptr) {
      SHW_TRY(is_here, work.sent->take(part.job.source, to));
    }
    if (!is_here) {
      const bool is_all = alike && length == work.out.size();
      SHW_CHECK(read_part(program, part, tile, work.space.storages, to, work.elements, work.stages,
                          is_all ? &work.crc : nullptr));
    }
    if (alike) return is_here ? Status{} : find_run(part, work);
    work.held += length;
  } else {
    add_part(program, part, tile, nullptr, work.elements);
  }
  auto pair = pair_of(part.common.sizes, part.box.strides,
                      static_cast<std::int64_t>(held) + part.box.offset, target, begin);
  for_each_canonical_pair(pair, [&](const LayoutPair& layouts) {
    tile.layouts = layouts;
    work.jobs.push_back(tile);
  });
  return {};
}

// Writes blocks of a payload to its file and computes the CRC.
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

  Status put(const BlockWork& work) {
    written_.length += work.out.size();
    return written_.in_order ? append(work) : scatter(work.block, work.out);
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

  Status append(const BlockWork& work) {
    BytesView bytes = work.out;
    written_.crc = work.crc ? combined_crc32(written_.crc, *work.crc, bytes.size())
                            : crc32_of(bytes, written_.crc);
    std::uint64_t begin = work.begin;
    // Written in pieces, to find holes and so that a cancelled run does not wait for a slow disk.
    for (std::uint64_t at = begin_ + offset_of(work.block); !bytes.empty();) {
      if (is_cancelled(progress_)) return cancelled_error();
      BytesView piece = bytes.first(std::min(bytes.size(), kWritten));
      if (piece.size() < kHole || !is_zero(piece)) {
        SHW_CHECK(work.file == nullptr ? file_.write_at(at, piece)
                                       : reflink_or_write(*work.file, begin, piece, file_, at));
      }
      at += piece.size();
      begin += piece.size();
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
      SHW_CHECK(write_nonzero_run(at, bytes.subspan(done, run)));
    }
    return {};
  }

  Status write_nonzero_run(std::uint64_t at, BytesView run) {
    if (is_zero(run)) return {};
    change_.add(at, run);
    return file_.write_at(begin_ + at, run);
  }

  OutputFile& file_;
  const Progress* progress_;
  std::uint64_t begin_;
  Extents strides_, sizes_;
  std::size_t element_;
  CrcChange change_;  // for blocks that are not contiguous
  WrittenBlocks written_;
};

Status fill_block(JobRange jobs, BlockWork& work) {
  work.jobs.clear();
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = work.program.jobs[j];
    auto part = part_of(work.program, job, work.block);
    if (part) SHW_CHECK(read_job(*part, work));
  }
  return {};
}

// Queue of blocks in the executor, oldest first: while one is computed the next is read. Each block
// has its own pair of slabs until it is written.
class BlockPipeline {
 public:
  BlockPipeline(Executor& executor, PayloadPart& part, Progress* progress)
      : executor_(executor), part_(part), progress_(progress) {}
  // Waits until no block uses the slabs.
  ~BlockPipeline() {
    for (const BlockWork& work : waiting_)
      if (!work.jobs.empty()) static_cast<void>(executor_.finish());
  }
  BlockPipeline(const BlockPipeline&) = delete;
  BlockPipeline& operator=(const BlockPipeline&) = delete;

  std::size_t count() const { return waiting_.size(); }
  std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const BlockWork& work : waiting_) bytes += work.bytes();
    return bytes;
  }
  void begin(BlockWork work) {
    StageClock clock(stages_of(progress_), Stage::kMake, work.out.size());
    if (!work.jobs.empty()) executor_.begin({work.in.first(work.held), work.jobs, {}, work.out});
    waiting_.push_back(std::move(work));
  }
  Status write_oldest() {
    BlockWork work = std::move(waiting_.front());
    waiting_.pop_front();
    if (!work.jobs.empty()) {
      StageClock clock(stages_of(progress_), Stage::kMake, 0);
      SHW_TRY([[maybe_unused]] Fingerprint none, executor_.finish());
    }
    StageClock clock(stages_of(progress_), Stage::kWrite, work.out.size());
    SHW_CHECK(part_.put(work));
    if (progress_ != nullptr) progress_->add(work.out.size());
    return {};
  }

 private:
  Executor& executor_;
  PayloadPart& part_;
  Progress* progress_;
  std::deque<BlockWork> waiting_;
};

// Number of slab pairs that fit in the limits for blocks of this size.
std::size_t pairs_of(const Box& block, std::size_t element, const SlabLimits& limits,
                     Executor& executor) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(volume(block.sizes).value_or(0)) * element;
  const std::uint64_t fit = limits.in_flight_bytes / std::max<std::uint64_t>(bytes, 1);
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(fit, 1, std::max<std::size_t>(executor.max_in_flight(), 1)));
}

}  // namespace

Result<WrittenBlocks> write_blocks(const Program& program, OutputId output, BlockRange range,
                                   Workspace& workspace, const SlabLimits& limits, OutputFile& file,
                                   Progress* progress, RemoteSourceData* sent) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  if (is_zeros(program, jobs))
    return WrittenBlocks{crc32_of_zeros(0, out.length), true, out.length, {}};
  ExtentsView sizes = program.sizes(out);
  BlockCut cut = block_cut_of_output(program, output, limits);
  PayloadPart part(file, out, sizes, cut.in_order, progress);
  ElementSums elements;
  std::size_t read_width = widest(program, jobs), width = size_of(out.dtype);
  Executor& executor = *workspace.executor;
  const Box whole_block{Extents(cut.block.size(), 0), cut.block};
  const std::size_t pairs = pairs_of(whole_block, read_width + width, limits, executor);
  if (workspace.pairs.size() < pairs) workspace.pairs.resize(pairs);
  const SlabMemory* memory = executor.memory();
  Blocks blocks{copy_of(sizes), cut.block};
  blocks.go_to(range.first);
  BlockPipeline under_way(executor, part, progress);
  for (std::uint64_t i = range.first; i < range.last && blocks.next(); ++i) {
    if (is_cancelled(progress)) return cancelled_error();
    if (under_way.count() == pairs) SHW_CHECK(under_way.write_oldest());
    auto count = static_cast<std::size_t>(volume(blocks.block.sizes).value_or(0));
    SlabPair& pair = workspace.pairs[i % pairs];
    BlockWork work{program,
                   workspace,
                   pair.jobs,
                   blocks.block,
                   pair.in.room(count * read_width, memory),
                   pair.out.room(count * width, memory),
                   elements,
                   sent,
                   stages_of(progress)};
    SHW_CHECK(fill_block(jobs, work));
    workspace.peak_bytes =
        std::max<std::uint64_t>(workspace.peak_bytes, under_way.bytes() + work.bytes());
    under_way.begin(std::move(work));
  }
  while (under_way.count() != 0) SHW_CHECK(under_way.write_oldest());
  WrittenBlocks written = part.written();
  written.elements = elements;
  if (sent != nullptr) {
    SHW_TRY(ElementSums of_others, sent->finish());
    written.elements += of_others;
  }
  return written;
}

std::uint32_t combine_range_crcs(std::span<const WrittenBlocks> ranges, std::uint64_t length) {
  bool in_order = std::all_of(ranges.begin(), ranges.end(),
                              [](const WrittenBlocks& range) { return range.in_order; });
  std::uint32_t crc = in_order ? 0 : crc32_of_zeros(0, length);
  for (const WrittenBlocks& range : ranges)
    crc = in_order ? combined_crc32(crc, range.crc, range.length) : crc ^ range.crc;
  return crc;
}

}  // namespace shw
