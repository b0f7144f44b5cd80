// The parts of which the files of a layout consist.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/exec/block_cut.h"
#include "core/formats/format_writer.h"

namespace shw {

// One part of a file: the list of LaidOut that holds it, and its position. At least one per chunk:
// 56 bytes each.
struct FilePart {
  enum class Kind : std::uint8_t { kBytes, kCopy, kMade } kind = Kind::kBytes;
  std::uint32_t file = 0;
  std::uint32_t index = 0;
  std::uint32_t piece = 0;  // number over all pieces of chunks
  std::uint64_t offset = 0, length = 0;
  BlockRange blocks = {};         // of a chunk: the blocks in this piece
  std::uint64_t block_count = 0;  // of the whole chunk
};

// The outputs in file order; `made` maps LaidOut::made to outputs.
std::vector<OutputId> outputs_in_file_order(const LaidOut& laid_out,
                                            std::span<const OutputId> made);

// Calls `then` for the parts of all files, file by file in order, without building a list: with
// millions of chunks it would be as large as the data about them. An error if a part is outside its
// file or overlaps the previous one; earlier calls are then void.
Status for_each_file_part(const LaidOut& laid_out,
                          const std::function<void(const FilePart&)>& then);
std::size_t file_part_count(const LaidOut& laid_out);

}  // namespace shw
