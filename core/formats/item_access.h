// How items.h finds and opens what a chunk points to. Inside core/formats only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/formats/common/item_reader.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// Opens the data files of one checkpoint for one thread. The last few stay open: items are asked
// for file by file, or tensor by tensor with a tile in the file of each of some ranks, so that a
// thousand files never mean a thousand descriptors.
class ItemFiles {
 public:
  explicit ItemFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const ByteSource>> open(FileId file);
  // Of chunks that will be asked for one after the other: reads the items of the first few at once,
  // where they are small and lie one behind another. How many that are, one at least.
  std::size_t read_ahead(std::span<const ChunkId> chunks);
  // Of one of many that are asked for as they lie: where it is small it is read with what follows
  // it, unless it was already.
  void read_around(const ItemPlace& place);

 private:
  struct OpenFile {
    FileId file = FileId::kNone;
    std::shared_ptr<const ByteSource> source;
    std::shared_ptr<const ByteSource> with_run;  // the same, where a run of it was read ahead
    std::int64_t run_begin = 0, run_end = 0;
  };
  Result<OpenFile*> find(FileId file);
  static void read_run(OpenFile& file, std::int64_t begin, std::int64_t end);

  const Checkpoint& checkpoint_;
  std::vector<OpenFile> open_;  // the latest behind
};

// The range of a file that an item takes.
Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place);

// A chunk's item, read by its codec. `how`: ItemRange::decompression.
Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part, const Decompression* how = nullptr);

// How an item is opened whose elements will all be read at once.
ItemPart part_to_read(const Checkpoint& checkpoint, ChunkId chunk);

// "the payload is [4] of float32, but the chunk is recorded as [8] of float32"
Error not_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);

// Its strides in bytes. A dimension of one element is never stepped along: its stride may be any
// number, and is 0 here.
Extents steps_of(const ItemHeader& header);

// Boxes of whole rows that fill `sizes` in row-major order, each of at most `most` elements, or of
// one.
std::vector<Box> row_slabs(const Extents& sizes, std::int64_t most);

// Elements at `first` with byte strides, as a row-major array of their own. The memory that `to`
// holds is used again.
Status read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                    ExtentsView strides, std::size_t element, Bytes& to);
Result<Bytes> read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                           ExtentsView strides, std::size_t element);

// Of a chunk's elements, by their index in the whole tensor: they pass in pieces, whatever their
// order and their codec.
Result<Fingerprint> fingerprint_in_pieces(const Checkpoint& checkpoint, ChunkId chunk,
                                          const Progress* progress);

// Of all its elements; an error where that is more than `limit`, or than what is saved of it could
// ever be: memory follows the bytes that are there, and a shape of 2^35 over one small chunk is
// made up.
Result<std::uint64_t> tensor_size(const Checkpoint& checkpoint, TensorId tensor,
                                  std::uint64_t limit);

// The elements are those of the chunk, as many of the dtype as recorded.
bool is_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);
// Every byte of the payload is one of an element, each once. Signs do not count.
bool lies_as_it_is(const ItemHeader& header);
// The same of what it is decompressed to.
bool passes_as_it_is(const ItemHeader& header);

// The error with the tensor named in its place.
Error naming(Error error, std::string_view tensor);

}  // namespace shw
