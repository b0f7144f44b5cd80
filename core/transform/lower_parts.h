// The jobs of one tile: from parts in the terms of chunks to strides of bytes in storages.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/box_reader.h"
#include "core/program/program.h"
#include "core/transform/arrangement.h"
#include "core/transform/check_origins.h"

namespace shw {

class PartLowering {
 public:
  PartLowering(const Arrangement& all, ProgramBuilder& builder) : all_(all), builder_(builder) {}

  // Reads the headers of chunks of an input, on every core; of others they are read when they are
  // needed.
  Status prepare(std::uint32_t input, const std::vector<ChunkId>& chunks, Progress* progress);
  // `parts` lie in the tile `box` of the tensor, whose elements are the output.
  Status add(OutputId output, const ArrangedTensor& tensor, const std::vector<Part>& parts,
             const Box& box);
  // Holds the finished program against what it was made of: after every add(), from any thread.
  Status check(const Program& program, OutputId output, const ArrangedTensor& tensor,
               const std::vector<Part>& parts, const Box& box) const;

 private:
  // A storage whose elements jobs read, and where they lie in it, by dim of the chunk.
  struct Held {
    SourceId source{};
    PartStorage storage;
  };
  struct Copy {
    Box box;  // in the output
    SourceId source{};
    Dtype from = Dtype::kUnknown;
    std::int64_t first = 0;
    Extents strides;
    ProgramBuilder::Change change = {};
  };

  // What is kept of it: a checkpoint may have millions of chunks.
  struct Row {
    SourceId source = SourceId::kNone;  // until the first job that reads it
    FileId file{};
    std::uint32_t strides = 0;  // in strides_
    std::uint16_t ndim = 0;
    bool is_stored = true;
    std::uint64_t offset = 0, length = 0;
    std::int64_t first = 0;
  };

  Result<Held> hold(const FromChunk& from);
  Result<Held> hold_file(const FromFile& from, Dtype dtype);
  Result<Held> hold(const Part& part);
  bool is_known(const FromChunk& from) const;
  // Of a chunk that is known.
  PartStorage storage_at(const FromChunk& from) const;
  Result<PartStorage> storage_in(const FromFile& from, Dtype dtype) const;
  Result<Copy> copy_of_part(const Part& part, const Box& tile);
  Status add_part(const Part& part, const Box& tile, std::vector<Copy>& copies);
  Status add_scaled(const Part& part, const Box& tile, std::vector<Copy>& copies);
  Result<ProgramBuilder::Change> factor_at(const Scaling& scaling, const Extents& cell,
                                           ProgramBuilder::Change change);
  // Copies side by side that are one copy.
  static void merge(std::vector<Copy>& copies);
  static bool join(Copy& first, const Copy& next);

  const Arrangement& all_;
  ProgramBuilder& builder_;
  std::vector<std::vector<std::uint32_t>> places_{};  // in rows_, by input and chunk
  std::vector<Row> rows_{};
  std::vector<std::int64_t> strides_{};
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, SourceId> files_{};
};

}  // namespace shw
