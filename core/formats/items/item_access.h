// Finds and opens items. Internal to core/formats; other code reads items with an ItemCursor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/common/item_reader.h"

namespace shw {

// Opens data files of one checkpoint on one thread. Keeps the last few open: items are requested
// file by file, or alternating between the files of a few ranks, so a thousand files never need a
// thousand descriptors.
class ItemFiles {
 public:
  explicit ItemFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const ByteSource>> open(FileId file);
  // Reads a small item together with the following ones, unless it was read
  // already.
  void read_with_following_items(const ItemPlace& place);

 private:
  struct OpenFile {
    FileId file = FileId::kNone;
    std::shared_ptr<const ByteSource> source;
    std::shared_ptr<const ByteSource>
        source_with_prefetched_run;  // the source with a prefetched range
    std::int64_t run_begin = 0, run_end = 0;
  };
  Result<OpenFile*> find(FileId file);
  static void read_run(OpenFile& file, std::int64_t begin, std::int64_t end);

  const Checkpoint& checkpoint_;
  std::vector<OpenFile> open_;  // the latest last
};

// The byte range of an item in its file.
Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place);

// The item of an entry. Without recorded transforms a compressed item is recognised by its first
// bytes.
struct EntryItem {
  ItemRange range;
  std::uint32_t magic = 0;  // the first four bytes, little-endian
  std::vector<std::string> transforms;
};
Result<EntryItem> open_entry(ItemFiles& files, const ItemPlace& place,
                             std::vector<std::string> transforms);

// Opens a chunk's item with its codec. `how`: ItemRange::decompression.
Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part, const Decompression* how = nullptr);

// Receives item headers from several threads.
struct HeaderVisitor {
  std::function<bool(std::size_t)> is_needed = nullptr;  // false: skips the item; null: none
  std::function<void(std::size_t, Result<ItemHeader>)> take;
};
// Reads the headers of chunks that are sorted by their place on disk, several files at a time.
Status for_each_item_header(const Checkpoint& checkpoint, std::span<const ChunkId> on_disk,
                            const HeaderVisitor& visitor, Progress* progress);

// How to open an item whose elements will all be read.
ItemPart part_to_read(const Checkpoint& checkpoint, ChunkId chunk);

// Formats as "the payload is [4] of float32, but the chunk is recorded as [8] of float32".
Error recorded_mismatch_error(const Checkpoint& checkpoint, ChunkId chunk,
                              const ItemHeader& header);

// Byte strides of the elements; 0 for dimensions of size 1 and for empty items, whose strides are
// never used.
Extents steps_of(const ItemHeader& header);

// Splits `sizes` into boxes of whole rows in row-major order, each with at most `most` elements or
// a single row.
std::vector<Box> split_into_row_boxes(const Extents& sizes, std::int64_t most);

// Reads a box of an item's elements, row-major and little-endian. Element [0, 0, ..] is at byte
// `first` of `storage`. Reuses the memory of `to`.
Status read_elements_of(const OpenItem& item, const ByteSource& storage, std::int64_t first,
                        const Box& box, Bytes& to);

// Total bytes of a tensor's elements; an error above `limit`, or above what
// the saved bytes could hold: a shape of 2^35 with one small chunk is
// invalid.
Result<std::uint64_t> tensor_size(const Checkpoint& checkpoint, TensorId tensor,
                                  std::uint64_t limit);

// True if the item has the dtype and number of elements of its chunk's record.
bool matches_record(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);
// True if the payload consists of the elements, each byte once. Ignores sign flags.
bool is_stored_verbatim(const ItemHeader& header);
// True if the decompressed payload consists of the elements, each byte once. Ignores sign flags.
bool is_payload_plain_elements(const ItemHeader& header);

// Adds the tensor name to the place of an error.
Error naming(Error error, std::string_view tensor);

}  // namespace shw
