// The jobs of one tile: from parts in the terms of chunks to strides of bytes in storages.
#pragma once

#include <map>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/program/program.h"
#include "core/transform/arrangement.h"
#include "core/transform/check_origins.h"

namespace shw {

class PartLowering {
 public:
  PartLowering(const Arrangement& all, ProgramBuilder& builder) : all_(all), builder_(builder) {}

  // `parts` lie in the tile `box` of the tensor, whose elements are the output.
  Status add(OutputId output, const ArrangedTensor& tensor, const std::vector<Part>& parts,
             const Box& box);
  // Holds the finished program against what it was made of.
  Status check(const Program& program, OutputId output, const ArrangedTensor& tensor,
               const std::vector<Part>& parts, const Box& box);

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

  Result<const Held*> hold(const FromChunk& from);
  Result<Held> hold_file(const FromFile& from, Dtype dtype);
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
  std::map<std::pair<std::uint32_t, ChunkId>, Held> held_{};
};

}  // namespace shw
