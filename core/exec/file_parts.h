// What the files that a format has laid out are put together from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/exec/block_cut.h"
#include "core/formats/format_writer.h"

namespace shw {

// Something that stands in a file: which of LaidOut's lists it is in, and where. There are as many
// as tiles, and more: 56 bytes each.
struct FilePart {
  enum class Is : std::uint8_t { kBytes, kCopy, kMade } is = Is::kBytes;
  std::uint32_t file = 0;
  std::uint32_t index = 0;
  std::uint32_t piece = 0;  // of all tiles' pieces
  std::uint64_t offset = 0, length = 0;
  BlockRange blocks = {};         // of a tile, in this piece
  std::uint64_t block_count = 0;  // of all the tile
};

// What is made, in the order in which it stands in the files; `made` by index in LaidOut::made.
std::vector<OutputId> outputs_in_order(const LaidOut& laid_out, std::span<const OutputId> made);

// Tells of the parts of all files, file by file and from the front to the back: of millions, a list
// of them would be as large as what is made of it. An error where one does not lie inside of its
// file, behind the one before; what was told until then is worth nothing.
Status each_file_part(const LaidOut& laid_out, const std::function<void(const FilePart&)>& then);
std::size_t count_of_parts(const LaidOut& laid_out);

}  // namespace shw
