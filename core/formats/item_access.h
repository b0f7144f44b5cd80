// Internals of core/formats: finds and opens the items for items.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/formats/common/item_reader.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// Opens data files of one checkpoint on one thread. Keeps the last few open: items are requested
// file by file, or alternating between the files of a few ranks, so a thousand files never need a
// thousand descriptors.
class ItemFiles {
 public:
  explicit ItemFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const ByteSource>> open(FileId file);
  // Announces chunks that are requested next: reads the items of the first few at once if they are
  // small and adjacent. Returns how many that are, at least one.
  std::size_t read_ahead(std::span<const ChunkId> chunks);
  // Reads a small item together with the following ones, unless it was read
  // already.
  void read_around(const ItemPlace& place);

 private:
  struct OpenFile {
    FileId file = FileId::kNone;
    std::shared_ptr<const ByteSource> source;
    std::shared_ptr<const ByteSource> with_run;  // the source with a prefetched range
    std::int64_t run_begin = 0, run_end = 0;
  };
  Result<OpenFile*> find(FileId file);
  static void read_run(OpenFile& file, std::int64_t begin, std::int64_t end);

  const Checkpoint& checkpoint_;
  std::vector<OpenFile> open_;  // the latest last
};

// The byte range of an item in its file.
Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place);

// Opens a chunk's item with its codec. `how`: ItemRange::decompression.
Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part, const Decompression* how = nullptr);

// How to open an item whose elements will all be read.
ItemPart part_to_read(const Checkpoint& checkpoint, ChunkId chunk);

// Formats as "the payload is [4] of float32, but the chunk is recorded as [8] of float32".
Error not_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);

// Byte strides of the elements; 0 for dimensions of size 1, whose stride is never
// used.
Extents steps_of(const ItemHeader& header);

// Splits `sizes` into boxes of whole rows in row-major order, each with at most `most` elements or
// a single row.
std::vector<Box> row_slabs(const Extents& sizes, std::int64_t most);

// Reads strided elements (byte strides) from `first` on as a row-major array. Reuses the memory of
// `to`.
Status read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                    ExtentsView strides, std::size_t element, Bytes& to);
Result<Bytes> read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                           ExtentsView strides, std::size_t element);

// Fingerprint of a chunk's elements by index in the whole tensor, computed in pieces for any layout
// and codec.
Result<Fingerprint> fingerprint_in_pieces(const Checkpoint& checkpoint, ChunkId chunk,
                                          const Progress* progress);

// Total bytes of a tensor's elements; an error above `limit`, or above what
// the saved bytes could hold: a shape of 2^35 with one small chunk is
// invalid.
Result<std::uint64_t> tensor_size(const Checkpoint& checkpoint, TensorId tensor,
                                  std::uint64_t limit);

// True if the item has the dtype and number of elements of its chunk's record.
bool is_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);
// True if the payload consists of the elements, each byte once. Ignores sign flags.
bool lies_as_it_is(const ItemHeader& header);
// True if the decompressed payload consists of the elements, each byte once. Ignores sign flags.
bool passes_as_it_is(const ItemHeader& header);

// Adds the tensor name to the place of an error.
Error naming(Error error, std::string_view tensor);

}  // namespace shw
