// A few rows of a file's bytes, with the owner of every byte and values in several types. Works for
// damaged files too, and lists what is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/byte_parts.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

inline constexpr std::uint64_t kBytesPerRow = 16;
inline constexpr std::uint64_t kMaxWindow = 4096;

// A record of the index: where it claims that bytes are.
struct BytesRecord {
  std::string name;  // "model.embed.weight [0:9, 0:64]"
  std::optional<ChunkId> chunk;
  ItemPlace place;
};

struct BytesWindow {
  std::string path;  // relative to the checkpoint
  std::uint64_t file_size = 0;
  std::uint64_t at = 0;     // the requested byte
  std::uint64_t first = 0;  // offset of `bytes`, a multiple of 16
  Bytes bytes;
  std::optional<BytesRecord> record;            // the record that contains `at` or was requested
  std::vector<BytePart> parts;                  // parts that intersect the window, in order
  std::vector<BytePart> all;                    // all parts of `record`, if few
  std::optional<std::uint64_t> previous, next;  // begin of the previous and next record
  std::vector<std::string> wrong;               // "the file ends here: 12 of 40 bytes are missing"

  // Typed values: contiguous elements in [values_first, values_last).
  Dtype dtype = Dtype::kUnknown;
  bool big_endian = false;
  std::uint64_t values_first = 0, values_last = 0;  // equal: none
  std::string no_values;                            // reason: "compressed"
  Extents offsets, sizes;  // of the chunk, if its elements are row-major from values_first on
};

// The window that begins with the row of a byte; offsets after the end give the last row.
// `preferred`: the record to select if several contain the byte.
Result<BytesWindow> bytes_at(const Checkpoint& checkpoint, const std::string& path,
                             std::uint64_t offset, std::optional<ChunkId> preferred,
                             Progress* progress = nullptr);
// The window at the first byte of a chunk.
Result<BytesWindow> bytes_of(const Checkpoint& checkpoint, ChunkId chunk,
                             Progress* progress = nullptr);

// The element of the window's dtype that begins at this byte, as text; empty if none.
std::string value_at(const BytesWindow& window, std::uint64_t offset);
// Index of that element in the whole tensor: "[9, 4096, 12]"; empty if unknown.
std::string index_at(const BytesWindow& window, std::uint64_t offset);
// Rows in the format of `hexdump -C`.
std::string hex_text(const BytesWindow& window, std::uint64_t first, std::uint64_t last);
// Parses "4096", "0x1000", "1,024", and "+64" or "-0x40" relative to `from`.
std::optional<std::uint64_t> parse_offset(std::string_view text, std::uint64_t from);

}  // namespace shw::verbs
