#include "core/exec/job_part.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "core/formats/zip/crc32.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

std::optional<Box> job_box_in_block(const Program& program, const ProgramJob& job,
                                    const Box& block) {
  if (block.sizes.empty()) return block;
  return intersect(block, Box{copy_of(program.at(job)), copy_of(program.sizes(job))});
}

// First byte of the part in its source.
std::int64_t first_byte(const Program& program, const JobPart& part) {
  ExtentsView at = program.at(part.job), strides = program.source_strides(part.job);
  std::int64_t first = part.job.first;
  for (std::size_t d = 0; d < at.size(); ++d)
    first += (part.common.offsets[d] - at[d]) * strides[d];
  return first;
}

Result<float> factor_of(const ProgramJob& job, SourceOpener& storages) {
  float factor = 0;
  if (job.factor == SourceId::kNone)
    return std::bit_cast<float>(static_cast<std::uint32_t>(job.constant[0]));
  SHW_TRY(auto source, storages.open(job.factor));
  SHW_CHECK(source->read(job.constant[0], std::as_writable_bytes(std::span(&factor, 1))));
  return factor;
}

}  // namespace

std::optional<JobPart> part_of(const Program& program, const ProgramJob& job, const Box& block) {
  auto common = job_box_in_block(program, job, block);
  if (!common) return std::nullopt;
  if (job.op == ElementOp::kConstant) {
    PackedBox nothing{Extents(common->sizes.size(), 0)};
    return JobPart{job, std::move(*common), std::move(nothing)};
  }
  auto box = packed(common->sizes, program.source_strides(job), size_of(job.from));
  assert(box);  // guaranteed by the proof of the program
  return JobPart{job, std::move(*common), std::move(*box)};
}

std::optional<std::uint64_t> contiguous_source_offset(const Program& program, const JobPart& part) {
  if (!part.is_read() || program.source(part.job.source).form != SourceForm::kStored)
    return std::nullopt;
  ExtentsView strides = program.source_strides(part.job), sizes = part.common.sizes;
  auto run = static_cast<std::int64_t>(size_of(part.job.from));
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] != 1 && strides[d] != run) return std::nullopt;
    run *= sizes[d];
  }
  return program.source(part.job.source).offset +
         static_cast<std::uint64_t>(first_byte(program, part));
}

Result<TileJob> tile_of(const ProgramJob& job, SourceOpener& storages) {
  TileJob tile{job.op, job.from, job.to, {}, {0, 0}, job.via};
  if (job.op == ElementOp::kConstant) std::copy_n(job.constant, 2, tile.constant);
  if (job.op == ElementOp::kScale) {
    SHW_TRY(tile.factor, factor_of(job, storages));
  }
  return tile;
}

void add_part(const Program& program, const JobPart& part, const TileJob& tile,
              const std::byte* bytes, ElementSums& elements) {
  const ProgramOutput& output = program.output(part.job.output);
  const Extents logical = row_major_strides(program.shape(output));
  ExtentsView offsets = program.offsets(output);
  std::int64_t first = 0;  // row-major index in the whole tensor
  for (std::size_t d = 0; d < offsets.size(); ++d)
    first += (offsets[d] + part.common.offsets[d]) * logical[d];
  TileJob job = tile;
  for_each_canonical_pair(
      pair_of(part.common.sizes, part.box.strides, part.box.offset, logical, first),
      [&](const LayoutPair& pair) {
        job.layouts = pair;
        add_elements(elements, bytes, job);
      });
}

Status read_part(const Program& program, const JobPart& part, const TileJob& tile,
                 SourceOpener& storages, std::span<std::byte> to, ElementSums& elements,
                 StageUsages* stages, std::optional<std::uint32_t>* crc) {
  const ProgramJob& job = part.job;
  ExtentsView strides = program.source_strides(job);
  SHW_TRY(auto source, storages.open(job.source));
  {
    StageClock clock(stages, Stage::kRead, to.size());
    SHW_CHECK(gather(*source, first_byte(program, part), part.common.sizes, strides,
                     size_of(job.from), to));
  }
  StageClock clock(stages, Stage::kMake, 0);
  if (SourceChecksumVerifier* sums = storages.sums();
      sums != nullptr && sums->needs_reads_of(job.source)) {
    BytesRead read{job.source, first_byte(program, part), part.common.sizes,
                   strides,    size_of(job.from),         to};
    if (crc != nullptr && contiguous_source_offset(program, part)) *crc = read.crc = crc32_of(to);
    SHW_CHECK(sums->add(read));
  }
  add_part(program, part, tile, to.data(), elements);
  return {};
}

Status for_each_job_part(const Program& program, OutputId output, BlockRange range,
                         const SlabLimits& limits,
                         const std::function<bool(const ProgramJob&)>& wanted,
                         const std::function<Status(const JobPart&)>& then) {
  const JobRange all = jobs_of(program, output);
  if (is_zeros(program, all)) return {};
  std::vector<const ProgramJob*> jobs;
  for (std::size_t j = all.first; j < all.last; ++j) {
    if (wanted(program.jobs[j])) jobs.push_back(&program.jobs[j]);
  }
  if (jobs.empty()) return {};
  Blocks blocks{copy_of(program.sizes(program.output(output))),
                block_cut_of_output(program, output, limits).block};
  blocks.go_to(range.first);
  for (std::uint64_t i = range.first; i < range.last && blocks.next(); ++i) {
    for (const ProgramJob* job : jobs) {
      auto part = part_of(program, *job, blocks.block);
      if (part) SHW_CHECK(then(*part));
    }
  }
  return {};
}

}  // namespace shw
