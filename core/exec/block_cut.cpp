#include "core/exec/block_cut.h"

#include <algorithm>

#include "core/tiles/blocks.h"

namespace shw {
namespace {

// The dims of a job, ordered by source stride, smallest first.
Extents dims_by_source_stride(const Program& program, const ProgramJob& job) {
  ExtentsView sizes = program.sizes(job), strides = program.source_strides(job);
  Extents order(sizes.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    order[d] = static_cast<std::int64_t>(order.size() - 1 - d);
  auto width = [&](std::int64_t dim) { return magnitude(strides[static_cast<std::size_t>(dim)]); };
  auto steps = [&](std::int64_t dim) {
    return sizes[static_cast<std::size_t>(dim)] > 1 && width(dim) != 0;
  };
  // Skips dims of size 1: their strides mean nothing and could make an untransposed job look
  // transposed.
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

}  // namespace

BlockCut block_cut_of_output(const Program& program, OutputId output, const SlabLimits& limits) {
  const ProgramOutput& out = program.output(output);
  const JobRange jobs = jobs_of(program, output);
  ExtentsView sizes = program.sizes(out);
  std::uint64_t element = size_of(out.dtype);
  std::int64_t turned_elements = 0;
  Extents order;
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = program.jobs[j];
    element = std::max<std::uint64_t>(element, size_of(job.from));
    if (job.op == ElementOp::kConstant) continue;
    Extents own = dims_by_source_stride(program, job);
    bool turned = !std::is_sorted(own.rbegin(), own.rend());
    std::int64_t count = volume(program.sizes(job)).value_or(0);
    if (!turned || count <= turned_elements) continue;
    turned_elements = count;
    order = std::move(own);
  }
  BlockCut cut;
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

std::uint64_t block_count(const Program& program, OutputId output, const SlabLimits& limits) {
  if (is_zeros(program, jobs_of(program, output))) return 1;
  Blocks blocks{copy_of(program.sizes(program.output(output))),
                block_cut_of_output(program, output, limits).block};
  return std::max<std::uint64_t>(blocks.count(), 1);
}

bool is_zeros(const Program& program, JobRange jobs) {
  return std::all_of(
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.first),
      program.jobs.begin() + static_cast<std::ptrdiff_t>(jobs.last), [](const ProgramJob& job) {
        return job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0;
      });
}

std::size_t widest(const Program& program, JobRange jobs) {
  std::size_t widest = 0;
  for (std::size_t j = jobs.first; j < jobs.last; ++j)
    widest = std::max<std::size_t>(widest, size_of(program.jobs[j].from));
  return widest;
}

}  // namespace shw
