// The part of a job that falls in a block: where its elements are read and how they change.
#pragma once

#include <functional>
#include <optional>

#include "core/base/stages.h"
#include "core/exec/block_cut.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/source_opener.h"
#include "core/io/gather.h"
#include "core/program/tile_job.h"

namespace shw {

struct JobPart {
  const ProgramJob& job;
  Box common;     // intersection of job and block, in the output
  PackedBox box;  // layout of the elements once read; unused for constants
  bool is_read() const { return job.op != ElementOp::kConstant; }
  std::size_t length() const { return static_cast<std::size_t>(box.length); }  // in bytes
};
// nullopt if job and block do not intersect.
std::optional<JobPart> part_of(const Program& program, const ProgramJob& job, const Box& block);

// Offset of the part's bytes in the source file; nullopt if they are not contiguous there in output
// order, or must be decoded.
std::optional<std::uint64_t> contiguous_source_offset(const Program& program, const JobPart& part);

// The conversion of each element. Reads the four bytes of a scale if the job has one in a file.
Result<TileJob> tile_of(const ProgramJob& job, SourceOpener& storages);

// Adds the elements to the checksums, each at its index in the whole tensor. `bytes` is null for
// constants.
void add_part(const Program& program, const JobPart& part, const TileJob& tile,
              const std::byte* bytes, ElementSums& elements);

// Reads the part (length() bytes) into `to` and adds it to the checksums. If `crc` is not null, it
// receives the CRC-32 of the bytes if that was computed anyway.
Status read_part(const Program& program, const JobPart& part, const TileJob& tile,
                 SourceOpener& storages, std::span<std::byte> to, ElementSums& elements,
                 StageUsages* stages, std::optional<std::uint32_t>* crc = nullptr);

// Calls back for the parts of an output's jobs for which `wanted` is true, in the order of
// write_blocks(): by block, then by job.
Status for_each_job_part(const Program& program, OutputId output, BlockRange range,
                         const SlabLimits& limits,
                         const std::function<bool(const ProgramJob&)>& wanted,
                         const std::function<Status(const JobPart&)>& then);

}  // namespace shw
