#include "core/exec/write_output.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/formats/common/crc32.h"
#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

// Below this a hole saves nothing: zeros are written.
constexpr std::size_t kHole = 1 << 20;

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
  cut.block = block_sizes(
      sizes, static_cast<std::int64_t>(std::max<std::uint64_t>(limits.slab_bytes / element, 1)),
      order);
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

Status read_job(const ProgramJob& job, const Box& common, BlockWork& work) {
  const Program& program = work.program;
  TileJob tile{job.op, job.from, job.to, {}, {job.constant[0], job.constant[1]}};
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
    SHW_CHECK(gather(*source, first, common.sizes, strides, size_of(job.from), to));
    if (alike) return {};
    work.held += length;
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

// The payload in its file, and its CRC wherever its parts are written.
class Payload {
 public:
  Payload(OutputFile& file, const ProgramOutput& out, ExtentsView sizes)
      : file_(file),
        begin_(out.offset),
        length_(out.length),
        sizes_(copy_of(sizes)),
        element_(size_of(out.dtype)) {}

  Status append(BytesView bytes) {
    crc_ = crc32_of(bytes, crc_);
    std::uint64_t at = begin_ + done_;
    done_ += bytes.size();
    if (bytes.size() >= kHole && is_zero(bytes)) return {};
    return file_.write_at(at, bytes);
  }

  // For parts in any order: the CRC of zeros first, then what every part changes in it.
  void begin_scattered() { crc_ = crc32_of_zeros(0, length_); }
  Status put(const Box& block, BytesView bytes) {
    Extents strides = byte_strides(sizes_, element_);
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
      std::int64_t at = 0;
      for (std::size_t d = 0; d < sizes_.size(); ++d)
        at += (block.offsets[d] + (d < outer ? rows.block.offsets[d] : 0)) * strides[d];
      SHW_CHECK(put_run(static_cast<std::uint64_t>(at), bytes.subspan(done, run)));
    }
    return {};
  }

  std::uint32_t crc() const { return crc_; }

 private:
  Status put_run(std::uint64_t at, BytesView run) {
    if (is_zero(run)) return {};
    std::uint32_t change = crc32_of(run) ^ crc32_of_zeros(0, run.size());
    // What stands behind it moves the change on; a CRC of zeros alone says by how much.
    crc_ ^= crc32_joined(change, 0, length_ - at - run.size());
    return file_.write_at(begin_ + at, run);
  }

  OutputFile& file_;
  std::uint64_t begin_, length_;
  Extents sizes_;
  std::size_t element_;
  std::uint64_t done_ = 0;
  std::uint32_t crc_ = 0;
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
  if (work.space.jobs.empty()) return {};
  return work.space.executor->run(work.in.first(work.held), work.space.jobs, work.out);
}

}  // namespace

Result<WrittenOutput> write_output(const Program& program, OutputId output, Workspace& workspace,
                                   const Limits& limits, OutputFile& file, Progress* progress) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  // A payload of zeros alone, however large, costs nothing.
  if (is_zeros(program, jobs)) return WrittenOutput{crc32_of_zeros(0, out.length), 0};
  ExtentsView sizes = program.sizes(out);
  Cut cut = cut_of(program, out, jobs, limits);
  Payload payload(file, out, sizes);
  if (!cut.in_order) payload.begin_scattered();
  WrittenOutput written;
  std::size_t read_width = widest(program, jobs);
  Blocks blocks{copy_of(sizes), cut.block};
  while (blocks.next()) {
    if (is_cancelled(progress)) return cancelled_error();
    auto count = static_cast<std::size_t>(volume(blocks.block.sizes).value_or(0));
    BlockWork work{program, workspace, blocks.block, workspace.in.room(count * read_width),
                   workspace.out.room(count * size_of(out.dtype))};
    SHW_CHECK(fill_block(jobs, work));
    written.peak_bytes = std::max<std::uint64_t>(written.peak_bytes, work.bytes());
    SHW_CHECK(cut.in_order ? payload.append(work.out) : payload.put(blocks.block, work.out));
    if (progress != nullptr) progress->add(work.out.size());
  }
  written.crc = payload.crc();
  return written;
}

}  // namespace shw
