// What a job gives to a block: where its elements are read, and what becomes of them.
#pragma once

#include <functional>
#include <optional>

#include "core/base/stages.h"
#include "core/exec/block_cut.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/storages.h"
#include "core/io/gather.h"
#include "core/program/tile_job.h"

namespace shw {

struct JobPart {
  const ProgramJob& job;
  Box common;     // of the job and the block, in the output
  PackedBox box;  // how its elements lie once they are read; of a constant nothing is
  bool is_read() const { return job.op != ElementOp::kConstant; }
  std::size_t length() const { return static_cast<std::size_t>(box.length); }  // in bytes
};
// Nothing where they do not meet.
std::optional<JobPart> part_of(const Program& program, const ProgramJob& job, const Box& block);

// Where its bytes begin in the file of its source; nothing where they do not lie there in one run,
// in the order of the output, or are decoded first.
std::optional<std::uint64_t> begin_of_run(const Program& program, const JobPart& part);

// What is done to each element. Where there is a factor, its four bytes are read.
Result<TileJob> tile_of(const ProgramJob& job, Storages& storages);

// Adds the elements up as they were read, each at its index in the whole tensor. `bytes` is null
// for a constant.
void add_part(const Program& program, const JobPart& part, const TileJob& tile,
              const std::byte* bytes, ElementSums& elements);

// Reads the part into `to`, length() bytes, and adds its elements up. `crc`, where it is not null,
// becomes the CRC-32 of those bytes where it had to be found anyway.
Status read_part(const Program& program, const JobPart& part, const TileJob& tile,
                 Storages& storages, std::span<std::byte> to, ElementSums& elements,
                 StageWorks* stages, std::optional<std::uint32_t>* crc = nullptr);

// The parts of those jobs of an output that are `wanted`, in the order in which write_blocks()
// takes them: block by block, and in each by job.
Status each_part(const Program& program, OutputId output, BlockRange range, const Limits& limits,
                 const std::function<bool(const ProgramJob&)>& wanted,
                 const std::function<Status(const JobPart&)>& then);

}  // namespace shw
