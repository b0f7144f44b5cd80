// Assigns file parts to ranks: the ranks of one machine divide its files piece by piece, so that
// one large file keeps all of them busy.
#pragma once

#include <span>
#include <vector>

#include "core/base/team.h"
#include "core/exec/file_assignment.h"
#include "core/exec/file_parts.h"

namespace shw {

// A file that several ranks of a machine write.
struct SharedFile {
  std::uint32_t file = 0;
  std::uint32_t owner = 0;  // the rank that creates and finishes it
  IndexRange parts;
};

struct PartAssignment {
  std::vector<IndexRange> own;        // by rank: a contiguous range of parts
  std::vector<std::uint32_t> writer;  // by part: the rank that writes it
  std::vector<SharedFile> shared;
};
// `parts` in the order of FileWriter: file by file.
PartAssignment assign_parts(const FileAssignment& dealt, std::span<const FilePart> parts);

// Bytes of a part, or of a piece of it, in its file.
std::uint64_t bytes_of(const FilePart& part);

}  // namespace shw
