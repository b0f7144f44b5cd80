// Which worker writes which part of the files: those of one machine share its files out, piece by
// piece, so that one large file keeps all of them busy.
#pragma once

#include <span>
#include <vector>

#include "core/base/team.h"
#include "core/exec/deal_files.h"
#include "core/exec/file_parts.h"

namespace shw {

// A file that several workers of a machine write.
struct SharedFile {
  std::uint32_t file = 0;
  std::uint32_t owner = 0;  // who creates and finishes it
  Share parts;
};

struct DealtParts {
  std::vector<Share> own;             // by worker: neighbours
  std::vector<std::uint32_t> writer;  // by part
  std::vector<SharedFile> shared;
};
// `parts` as FileWriter has them: file by file.
DealtParts deal_parts(const DealtFiles& dealt, std::span<const FilePart> parts);

// Bytes that a part, or a piece of one, has in its file.
std::uint64_t bytes_of(const FilePart& part);

}  // namespace shw
