// What the files that a format has laid out are put together from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/exec/block_cut.h"
#include "core/formats/format_writer.h"

namespace shw {

// Something that stands in a file: which of LaidOut's lists it is in, and where.
struct FilePart {
  enum class Is : std::uint8_t { kBytes, kCopy, kMade } is = Is::kBytes;
  std::uint32_t file = 0;
  std::size_t index = 0;
  std::uint64_t offset = 0, length = 0;
  std::uint64_t skipped = 0;      // of a copy, in front of this piece
  BlockRange blocks = {};         // of a tile, in this piece
  std::uint64_t block_count = 0;  // of all the tile
  std::size_t piece = 0;          // of all tiles' pieces
};

// What is made, in the order in which it stands in the files; `made` by index in LaidOut::made.
std::vector<OutputId> outputs_in_order(const LaidOut& laid_out, std::span<const OutputId> made);

// Of all files, file by file and from the front to the back. An error where one does not lie inside
// of its file, behind the one before.
Result<std::vector<FilePart>> file_parts_of(const LaidOut& laid_out);

}  // namespace shw
