// Describes the bytes of a file for display: the bounds of records and the meaning of
// their parts, derived from the bytes. For a truncated archive the local headers are
// used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

enum class PartKind : std::uint8_t {
  kHeader,   // describes what follows: a local header, a length, a table of names
  kPayload,  // saved data
  kTrailer,  // follows the data: a data descriptor, the archive's end
  kIndex,    // an entry of the archive's directory
  kPadding,  // alignment
};

struct BytePart {
  std::uint64_t first = 0, last = 0;  // half-open, in the file
  PartKind kind = PartKind::kPayload;
  std::string name;  // "local header of archive/data/0"
  friend bool operator==(const BytePart&, const BytePart&) = default;
};

struct ByteParts {
  std::vector<BytePart> parts;  // contiguous and in order, covering the range
  bool is_archive = false;
  std::optional<Error> damage;  // why the archive could not be parsed
};

// The parts of a range that holds one item, or of a whole file. Reads headers and directories only,
// at most some MiB.
Result<ByteParts> byte_parts(const ByteSource& source, FileRange range);

}  // namespace shw
