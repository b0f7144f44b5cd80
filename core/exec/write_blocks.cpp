#include "core/exec/write_blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "core/exec/element_fingerprint.h"
#include "core/formats/common/crc32.h"
#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Below this a hole saves nothing: zeros are written.
constexpr std::size_t kHole = 1 << 20;
// Written at once: files that two threads write to are locked as often as they are written to, and
// somebody who stops or pauses it waits for one of them a thread: 25 ms at 40 MB/s.
constexpr std::size_t kWritten = 1 << 20;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// The dims of a job, fastest in its source first.
Extents inner_first(const Program& program, const ProgramJob& job) {
  ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
  Extents order(sizes.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    order[d] = static_cast<std::int64_t>(order.size() - 1 - d);
  auto width = [&](std::int64_t dim) { return magnitude(strides[static_cast<std::size_t>(dim)]); };
  auto steps = [&](std::int64_t dim) {
    return sizes[static_cast<std::size_t>(dim)] > 1 && width(dim) != 0;
  };
  // Dims that are not stepped along keep their places; they would only hide that nothing is turned.
  Extents turned;
  std::copy_if(order.begin(), order.end(), std::back_inserter(turned), steps);
  std::stable_sort(turned.begin(), turned.end(),
                   [&](std::int64_t a, std::int64_t b) { return width(a) < width(b); });
  auto next = turned.begin();
  for (std::int64_t& dim : order) {
    if (steps(dim)) dim = *next++;
  }
  return order;
}

struct Cut {
  Extents block;         // sizes
  bool in_order = true;  // every block is one run of the output, and they follow each other
};

Cut cut_of(const Program& program, const ProgramOutput& out, JobRange jobs, const Limits& limits) {
  ExtentsView sizes = program.sizes(out);
  std::uint64_t element = size_of(out.dtype);
  std::int64_t turned_elements = 0;
  Extents order;
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = program.jobs[j];
    element = std::max<std::uint64_t>(element, size_of(job.from));
    if (job.op == ElementOp::kConstant) continue;
    Extents own = inner_first(program, job);
    bool turned = !std::is_sorted(own.rbegin(), own.rend());
    std::int64_t count = volume(program.sizes(job)).value_or(0);
    if (!turned || count <= turned_elements) continue;
    turned_elements = count;
    order = std::move(own);
  }
  Cut cut;
  std::uint64_t bytes = order.empty() ? limits.slab_bytes : limits.turned_bytes;
  cut.block = block_sizes(
      sizes, static_cast<std::int64_t>(std::max<std::uint64_t>(bytes / element, 1)), order);
  bool whole_below = true;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (!whole_below && cut.block[d] != 1) cut.in_order = false;
    whole_below = whole_below && cut.block[d] == sizes[d];
  }
  return cut;
}

// One block on its way: its source bytes, its elements, and what turns the one into the other.
struct BlockWork {
  const Program& program;
  Workspace& space;
  Box block;
  std::span<std::byte> in, out;
  Fingerprint& elements;  // WrittenBlocks::elements
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

Result<float> factor_of(const ProgramJob& job, BlockWork& work) {
  float factor = 0;
  if (job.factor == SourceId::kNone)
    return std::bit_cast<float>(static_cast<std::uint32_t>(job.constant[0]));
  SHW_TRY(auto source, work.space.storages.open(job.factor));
  SHW_CHECK(source->read(static_cast<std::uint64_t>(job.factor_at),
                         std::as_writable_bytes(std::span(&factor, 1))));
  return factor;
}

// Elements of a job as they were read, by their index in the whole tensor; `strides` and `offset`
// say where they lie in `bytes`.
void add_elements(const ProgramJob& job, TileJob tile, const Box& common, const std::byte* bytes,
                  ExtentsView strides, std::int64_t offset, BlockWork& work) {
  const ProgramOutput& out = work.program.output(job.output);
  Extents logical = row_major_strides(work.program.shape(out));
  ExtentsView at = work.program.at(job);
  std::int64_t first = job.logical;
  for (std::size_t d = 0; d < at.size(); ++d) first += (common.offsets[d] - at[d]) * logical[d];
  each_canonical_pair(pair_of(common.sizes, strides, offset, logical, first),
                      [&](const LayoutPair& pair) {
                        tile.layouts = pair;
                        add_elements(work.elements, bytes, tile);
                      });
}

Status read_job(const ProgramJob& job, const Box& common, BlockWork& work) {
  const Program& program = work.program;
  TileJob tile{job.op, job.from, job.to, {}, {job.constant[0], job.constant[1]}, job.via};
  if (job.op == ElementOp::kScale) {
    SHW_TRY(tile.factor, factor_of(job, work));
  }
  ExtentsView at = program.at(job), strides = program.source_strides(job);
  Extents target = byte_strides(work.block.sizes, size_of(job.to));
  std::int64_t first = job.first, begin = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    first += (common.offsets[d] - at[d]) * strides[d];
    begin += (common.offsets[d] - work.block.offsets[d]) * target[d];
  }
  auto box = packed(common.sizes, strides, size_of(job.from));
  assert(box);
  std::size_t held = work.held;
  if (job.op != ElementOp::kConstant) {
    auto length = static_cast<std::size_t>(box->length);
    bool alike = job.op == ElementOp::kCopy && lie_alike(common.sizes, *box, target);
    auto to = alike ? work.out.subspan(static_cast<std::size_t>(begin), length)
                    : work.in.subspan(held, length);
    SHW_TRY(auto source, work.space.storages.open(job.source));
    {
      StageClock clock(work.stages, Stage::kRead, length);
      SHW_CHECK(gather(*source, first, common.sizes, strides, size_of(job.from), to));
    }
    StageClock clock(work.stages, Stage::kMake, 0);
    add_elements(job, tile, common, to.data(), box->strides, box->offset, work);
    if (alike) return {};
    work.held += length;
  } else {
    add_elements(job, tile, common, nullptr, Extents(common.sizes.size(), 0), 0, work);
  }
  auto pair = pair_of(common.sizes, box->strides, static_cast<std::int64_t>(held) + box->offset,
                      target, begin);
  each_canonical_pair(pair, [&](const LayoutPair& layouts) {
    tile.layouts = layouts;
    work.space.jobs.push_back(tile);
  });
  return {};
}

std::optional<Box> common_of(const Program& program, const ProgramJob& job, const Box& block) {
  if (block.sizes.empty()) return block;
  return intersect(block, Box{copy_of(program.at(job)), copy_of(program.sizes(job))});
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

bool is_zeros(const Program& program, JobRange jobs) {
  return std::all_of(
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.first),
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.last), [](const ProgramJob& job) {
        return job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0;
      });
}

// The widest element that any job reads.
std::size_t widest(const Program& program, JobRange jobs) {
  std::size_t widest = 0;
  for (std::size_t j = jobs.first; j < jobs.last; ++j)
    widest = std::max<std::size_t>(widest, size_of(program.jobs[j].from));
  return widest;
}

Status fill_block(JobRange jobs, BlockWork& work) {
  work.space.jobs.clear();
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = work.program.jobs[j];
    auto common = common_of(work.program, job, work.block);
    if (common) SHW_CHECK(read_job(job, *common, work));
  }
  StageClock clock(work.stages, Stage::kMake, work.out.size());
  if (work.space.jobs.empty()) return {};
  SHW_TRY([[maybe_unused]] Fingerprint none,
          work.space.executor->run({work.in.first(work.held), work.space.jobs, {}, work.out}));
  return {};
}

}  // namespace

std::uint64_t block_count(const Program& program, OutputId output, const Limits& limits) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  // A payload of zeros alone, however large, costs nothing.
  if (is_zeros(program, jobs)) return 1;
  ExtentsView sizes = program.sizes(out);
  Blocks blocks{copy_of(sizes), cut_of(program, out, jobs, limits).block};
  return std::max<std::uint64_t>(blocks.count(), 1);
}

Result<WrittenBlocks> write_blocks(const Program& program, OutputId output, BlockRange range,
                                   Workspace& workspace, const Limits& limits, OutputFile& file,
                                   Progress* progress) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  if (is_zeros(program, jobs))
    return WrittenBlocks{crc32_of_zeros(0, out.length), true, out.length, 0, {}};
  ExtentsView sizes = program.sizes(out);
  Cut cut = cut_of(program, out, jobs, limits);
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
