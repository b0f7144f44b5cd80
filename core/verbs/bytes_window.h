// From a tensor to the bytes of its file: a window of a few rows, what every byte of it belongs to,
// and how to read it as numbers. Works where the file is damaged, and says what of it is missing.
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

inline constexpr std::uint64_t kBytesARow = 16;
inline constexpr std::uint64_t kMostWindow = 4096;

// A record of the index: where it says that bytes lie, true or not.
struct BytesRecord {
  std::string name;  // "model.embed.weight [0:9, 0:64]"
  std::optional<ChunkId> chunk;
  ItemPlace place;
};

struct BytesWindow {
  std::string path;  // relative to the checkpoint
  std::uint64_t file_size = 0;
  std::uint64_t at = 0;     // the byte that was gone to
  std::uint64_t first = 0;  // of `bytes`; a multiple of 16
  Bytes bytes;
  std::optional<BytesRecord> record;            // that `at` lies in, or that was asked for
  std::vector<BytePart> parts;                  // whatever touches the window, in order
  std::vector<BytePart> all;                    // the parts of `record`, few enough to list
  std::optional<std::uint64_t> previous, next;  // where the record before and the one after begin
  std::vector<std::string> wrong;               // "the file ends here: 12 of 40 bytes are missing"

  // Typed values: elements side by side in [values_first, values_last).
  Dtype dtype = Dtype::kUnknown;
  bool big_endian = false;
  std::uint64_t values_first = 0, values_last = 0;  // the same: there are none
  std::string no_values;                            // why: "compressed"
  Extents offsets, sizes;  // of the chunk, where its elements stand row-major from values_first on
};

// The window that begins with the row of a byte of a file; an offset behind its end is its last
// row. `preferred`: of several records that hold the byte.
Result<BytesWindow> bytes_at(const Checkpoint& checkpoint, const std::string& path,
                             std::uint64_t offset, std::optional<ChunkId> preferred,
                             Progress* progress = nullptr);
// Where the bytes of a chunk begin.
Result<BytesWindow> bytes_of(const Checkpoint& checkpoint, ChunkId chunk,
                             Progress* progress = nullptr);

// The element of the window's dtype that begins at a byte of it, as text; empty where none does.
std::string value_at(const BytesWindow& window, std::uint64_t offset);
// Its index in the whole tensor: "[9, 4096, 12]"; empty where that is not known.
std::string index_at(const BytesWindow& window, std::uint64_t offset);
// Rows as `hexdump -C` prints them.
std::string hex_text(const BytesWindow& window, std::uint64_t first, std::uint64_t last);
// "4096", "0x1000", "1,024", "+64" and "-0x40" from `from` on.
std::optional<std::uint64_t> parse_offset(std::string_view text, std::uint64_t from);

}  // namespace shw::verbs
