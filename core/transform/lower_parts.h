// Lowers the parts of tiles to jobs: from chunk coordinates to byte strides in storages. First
// register all inputs, then lower tiles on all threads.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/items/chunk_storage.h"
#include "core/program/program_frame.h"
#include "core/transform/check_origins.h"
#include "core/transform/target_state.h"

namespace shw {

class PartLowering {
 public:
  explicit PartLowering(const TargetState& all);

  // Reads the headers of chunks of an input, in parallel. Call it once per input.
  Status prepare(std::uint32_t input, const std::vector<ChunkId>& chunks, Progress* progress);
  // Registers a range of a file of input 0.
  void add_file(const FromFile& from);
  // Adds the names of all registered files; names may repeat.
  void add_names(std::vector<std::string>& names) const;
  // Adds all inputs to the program as sources. Afterwards nothing can be registered.
  void set_sources(ProgramFrame& frame);

  // Replaces `jobs` by those that compute a tile of tensor `fqn` from its parts.
  Status jobs_of(std::string_view fqn, std::span<const Part> parts, const Box& tile,
                 std::vector<NewJob>& jobs) const;
  // Checks rows of the program against the parts that they were lowered from.
  Status check(const Program& program, JobRange jobs, std::string_view fqn,
               std::span<const Part> parts, const Box& tile) const;

 private:
  // A source of the program, and where and with which strides the part's elements lie in it. Every
  // chunk is a source of its own until set_sources(), so jobs of two chunks that share bytes are
  // not merged.
  struct Held {
    SourceId source{};
    PartStorage storage;
  };
  // Compact form of a source, because there may be millions of chunks.
  struct Row {
    std::uint64_t offset = 0, length = 0;
    std::int64_t first = 0;
    FileId file{};
    std::uint32_t strides = 0;  // index in strides_
    std::uint16_t ndim = 0;
    bool is_stored = true;
  };
  // Rows of one input, which are adjacent.
  struct RowsOfInput {
    std::size_t first = 0;
    std::vector<std::uint32_t> of_chunk = {};  // in rows_, kNoRow if there is none
  };
  using FileRun = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // name, offset, length

  ExtentsView strides_of(const Row& row) const {
    return ExtentsView(strides_).subspan(row.strides, row.ndim);
  }
  void share_strides(std::size_t first_row);
  SourceId program_source_of(SourceId source) const;
  PartStorage storage_of_chunk_part(const FromChunk& from) const;
  Result<PartStorage> storage_of_file_part(const FromFile& from, Dtype dtype) const;
  Result<Held> source_and_storage_of(const Part& part) const;
  Result<NewJob> job_of_part(const Part& part, const Box& tile) const;
  Status add_part(const Part& part, const Box& tile, std::vector<NewJob>& jobs) const;
  Status add_scaled_jobs(const Part& part, const Box& tile, std::vector<NewJob>& jobs) const;
  Status factor_at(const Scaling& scaling, const Extents& cell, JobConversion& change) const;

  const TargetState& all_;
  std::vector<RowsOfInput> inputs_;
  std::vector<Row> rows_{};
  std::vector<std::int64_t> strides_{};
  std::map<FileRun, SourceId> files_{};
  std::vector<SourceId> moved_{};  // by row, then by file: number in the program; empty: unchanged
};

// Box of the scaling factors that a part needs, in the tensor of factors.
Box factor_box_of(const Part& part);

}  // namespace shw
