// Reads the elements of a box of a chunk sequentially, row-major: directly from the file if they
// are contiguous there, else from a decoded copy of the box. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/formats/decoded_items.h"

namespace shw {

class BlockReader {
 public:
  // Both arguments must outlive this object.
  BlockReader(const Checkpoint& checkpoint, DecodedItems& decoded)
      : decoded_(decoded), boxes_(checkpoint, /*decoded_bytes=*/0) {}
  // True if the elements are stored undecoded, so that any box can be read alone. Otherwise boxes
  // must be read in order, and the item is decoded up to each of them. kDamaged if the item does
  // not match its chunk's record.
  Result<bool> is_stored(ChunkId chunk);
  // Selects the box for the following reads, relative to the chunk. kDamaged if the item does not
  // match its chunk's record.
  Status begin(ChunkId chunk, const Box& box);
  // True if all these bytes are in a file hole.
  bool is_hole(std::uint64_t at, std::uint64_t length) const;
  // Bytes [at, at + length) of the box, in `buffer` or in an internal one; valid until the next
  // call.
  Result<BytesView> read(std::uint64_t at, std::uint64_t length, Bytes& buffer);

 private:
  Status hold(ChunkId chunk, const Box& box, const ChunkStorage& storage, std::size_t element);

  DecodedItems& decoded_;
  BoxReader boxes_;
  bool holds_ = false;
  Bytes held_;
  std::shared_ptr<const ByteSource> source_;
  std::uint64_t first_ = 0;  // position of the box in the source
  std::vector<Extent> extents_;
};

}  // namespace shw
