// What the bytes of a file are, for people who look at them: where records begin and end, and what
// each part of one is. Told by the bytes themselves, as far as they can be read: of an archive that
// was cut off, what its local headers say.
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
  kHeader,   // says what follows: a local header, a length, a table of names
  kPayload,  // what was saved
  kTrailer,  // stands behind it: a data descriptor, the archive's end
  kIndex,    // an entry of the archive's directory
  kPadding,  // fills up to the next multiple
};

struct BytePart {
  std::uint64_t first = 0, last = 0;  // in the file, half open
  PartKind kind = PartKind::kPayload;
  std::string name;  // "local header of archive/data/0"
  friend bool operator==(const BytePart&, const BytePart&) = default;
};

struct ByteParts {
  std::vector<BytePart> parts;  // in order, side by side, from the range's first byte to its last
  bool is_archive = false;
  std::optional<Error> damage;  // why the archive could not be read as one
};

// The parts of a range that holds one item, or of a whole file. Reads headers and directories, no
// payload; at most some MiB, whatever the range announces.
Result<ByteParts> byte_parts(const ByteSource& source, FileRange range);

}  // namespace shw
