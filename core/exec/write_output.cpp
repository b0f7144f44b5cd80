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
struct Slabs {
  Bytes in, out;
  std::vector<TileJob> jobs;
};

Status read_job(const Program& program, const ProgramJob& job, const Box& block, const Box& common,
                Storages& storages, Slabs& slabs) {
  TileJob tile{job.op, job.from, job.to, {}, {job.constant[0], job.constant[1]}};
  ExtentsView at = program.at(job), strides = program.source_strides(job);
  Extents target = byte_strides(block.sizes, size_of(job.to));
  std::int64_t first = job.first, begin = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    first += (common.offsets[d] - at[d]) * strides[d];
    begin += (common.offsets[d] - block.offsets[d]) * target[d];
  }
  auto box = packed(common.sizes, strides, size_of(job.from));
  assert(box);
  std::size_t held = slabs.in.size();
  if (job.op != ElementOp::kConstant) {
    slabs.in.resize(held + static_cast<std::size_t>(box->length));
    SHW_TRY(auto source, storages.open(job.source));
    SHW_CHECK(gather(*source, first, common.sizes, strides, size_of(job.from),
                     std::span(slabs.in).subspan(held)));
  }
  auto pair = pair_of(common.sizes, box->strides, static_cast<std::int64_t>(held) + box->offset,
                      target, begin);
  each_canonical_pair(pair, [&](const LayoutPair& layouts) {
    tile.layouts = layouts;
    slabs.jobs.push_back(tile);
  });
  return {};
}

std::optional<Box> common_of(const Program& program, const ProgramJob& job, const Box& block) {
  if (block.sizes.empty()) return block;
  return intersect(block, Box{copy_of(program.at(job)), copy_of(program.sizes(job))});
}

// The payload in the sink, and its CRC wherever its parts are written.
class Payload {
 public:
  Payload(ByteSink& sink, const ProgramOutput& out, ExtentsView sizes)
      : sink_(sink),
        begin_(sink.position()),
        length_(out.length),
        sizes_(copy_of(sizes)),
        element_(size_of(out.dtype)) {}

  Status append(BytesView bytes) {
    crc_ = crc32_of(bytes, crc_);
    if (bytes.size() >= kHole && is_zero(bytes)) return sink_.skip(bytes.size());
    return sink_.write(bytes);
  }

  // For parts in any order: the CRC of zeros first, then what every part changes in it.
  Status begin_scattered() {
    crc_ = crc32_of_zeros(0, length_);
    return sink_.skip(length_);
  }
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
    return sink_.write_at(begin_ + at, run);
  }

  ByteSink& sink_;
  std::uint64_t begin_, length_;
  Extents sizes_;
  std::size_t element_;
  std::uint32_t crc_ = 0;
};

bool is_zeros(const Program& program, JobRange jobs) {
  return std::all_of(
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.first),
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.last), [](const ProgramJob& job) {
        return job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0;
      });
}

Status fill_block(const Program& program, JobRange jobs, const Box& block, std::size_t element,
                  Storages& storages, Executor& executor, Slabs& slabs) {
  slabs.in.clear();
  slabs.jobs.clear();
  auto elements_here = static_cast<std::size_t>(volume(block.sizes).value_or(0));
  slabs.out.resize(elements_here * element);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = program.jobs[j];
    auto common = common_of(program, job, block);
    // A slab that grew as it was filled would take twice its size.
    slabs.in.reserve(elements_here * size_of(job.from));
    if (common) SHW_CHECK(read_job(program, job, block, *common, storages, slabs));
  }
  return executor.run(slabs.in, slabs.jobs, slabs.out);
}

}  // namespace

Result<WrittenOutput> write_output(const Program& program, OutputId output, Storages& storages,
                                   Executor& executor, const Limits& limits, ByteSink& sink,
                                   Progress* progress) {
  const ProgramOutput& out = program.output(output);
  JobRange jobs = jobs_of(program, output);
  // A payload of zeros alone, however large, costs nothing.
  if (is_zeros(program, jobs)) {
    SHW_CHECK(sink.skip(out.length));
    return WrittenOutput{crc32_of_zeros(0, out.length), 0};
  }
  ExtentsView sizes = program.sizes(out);
  Cut cut = cut_of(program, out, jobs, limits);
  Payload payload(sink, out, sizes);
  if (!cut.in_order) SHW_CHECK(payload.begin_scattered());
  WrittenOutput written;
  Slabs slabs;
  Blocks blocks{copy_of(sizes), cut.block};
  while (blocks.next()) {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_CHECK(
        fill_block(program, jobs, blocks.block, size_of(out.dtype), storages, executor, slabs));
    written.peak_bytes =
        std::max<std::uint64_t>(written.peak_bytes, slabs.in.size() + slabs.out.size());
    SHW_CHECK(cut.in_order ? payload.append(slabs.out) : payload.put(blocks.block, slabs.out));
    if (progress != nullptr) progress->add(slabs.out.size());
  }
  written.crc = payload.crc();
  return written;
}

}  // namespace shw
