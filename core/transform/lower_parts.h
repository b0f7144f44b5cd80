// The jobs of one tile: from parts in the terms of chunks to strides of bytes in storages. First it
// is told all that parts are taken from, then tiles are lowered, by all threads at once.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/box_reader.h"
#include "core/program/program_frame.h"
#include "core/transform/check_origins.h"
#include "core/transform/target_state.h"

namespace shw {

class PartLowering {
 public:
  explicit PartLowering(const TargetState& all);

  // Reads the headers of chunks of an input, on every core. Once an input.
  Status prepare(std::uint32_t input, const std::vector<ChunkId>& chunks, Progress* progress);
  // A run of a file of input 0 that parts are taken from.
  void add_file(const FromFile& from);
  // Files of all these, each once or more.
  void add_names(std::vector<std::string>& names) const;
  // All of these as sources. Nothing can be added any more.
  void set_sources(ProgramFrame& frame);

  // What makes a tile of a tensor of that name, whose elements are an output, of its parts: `jobs`
  // become those of it.
  Status jobs_of(std::string_view fqn, std::span<const Part> parts, const Box& tile,
                 std::vector<NewJob>& jobs) const;
  // Holds what stands in the program now against what it was made of.
  Status check(const Program& program, JobRange jobs, std::string_view fqn,
               std::span<const Part> parts, const Box& tile) const;

 private:
  // A storage whose elements jobs read, and where they lie in it, by dim of the chunk. Sources are
  // told apart by chunk until the end: two that are the same bytes are no neighbours for that.
  struct Held {
    SourceId source{};
    PartStorage storage;
  };
  // What is kept of it: a checkpoint may have millions of chunks.
  struct Row {
    std::uint64_t offset = 0, length = 0;
    std::int64_t first = 0;
    FileId file{};
    std::uint32_t strides = 0;  // in strides_
    std::uint16_t ndim = 0;
    bool is_stored = true;
  };
  // The rows of one input, which stand side by side.
  struct RowsOfInput {
    std::size_t first = 0;
    std::vector<std::uint32_t> of_chunk = {};  // in rows_, kNoRow where there is none
  };
  using FileRun = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // name, offset, length

  ExtentsView strides_of(const Row& row) const {
    return ExtentsView(strides_).subspan(row.strides, row.ndim);
  }
  void share_strides(std::size_t first_row);
  SourceId in_program(SourceId source) const;
  PartStorage storage_at(const FromChunk& from) const;
  Result<PartStorage> storage_in(const FromFile& from, Dtype dtype) const;
  Result<Held> hold(const Part& part) const;
  Result<NewJob> job_of_part(const Part& part, const Box& tile) const;
  Status add_part(const Part& part, const Box& tile, std::vector<NewJob>& jobs) const;
  Status add_scaled(const Part& part, const Box& tile, std::vector<NewJob>& jobs) const;
  Status factor_at(const Scaling& scaling, const Extents& cell,
                   ProgramBuilder::Change& change) const;

  const TargetState& all_;
  std::vector<RowsOfInput> inputs_;
  std::vector<Row> rows_{};
  std::vector<std::int64_t> strides_{};
  std::map<FileRun, SourceId> files_{};
  std::vector<SourceId> moved_{};  // by row, then by file: in the program; empty: the same number
};

// The factors that a part with a scaling takes, as a box of the tensor of factors.
Box factors_of(const Part& part);

}  // namespace shw
