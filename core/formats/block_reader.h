// The elements of a box of a tile, row-major, from front to back: where they lie in one run of the
// file they are read as they are asked for, else the box is held. For one thread.
#pragma once

#include <memory>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/formats/decoded_items.h"

namespace shw {

class BlockReader {
 public:
  // Both outlive it.
  BlockReader(const Checkpoint& checkpoint, DecodedItems& decoded)
      : decoded_(decoded), boxes_(checkpoint, /*decoded_bytes=*/0) {}
  // Its elements lie in the file as they are: any box of them is read alone. Else blocks are asked
  // for in their order: what is not decoded whole is decoded up to each of them. kDamaged where the
  // item is not what is recorded of its chunk.
  Result<bool> is_stored(ChunkId chunk);
  // The box that is read from now on, counted from the tile's first element. kDamaged where the
  // item is not what is recorded of its chunk.
  Status begin(ChunkId chunk, const Box& box);
  // All of these bytes are zeros that take no disk.
  bool is_hole(std::uint64_t at, std::uint64_t length) const;
  // Bytes [at, at + length) of the box, in `buffer` or where they are held; valid until the next
  // call.
  Result<BytesView> read(std::uint64_t at, std::uint64_t length, Bytes& buffer);

 private:
  Status hold(ChunkId chunk, const Box& box, const ChunkStorage& storage, std::size_t element);

  DecodedItems& decoded_;
  BoxReader boxes_;
  bool holds_ = false;
  Bytes held_;
  std::shared_ptr<const ByteSource> source_;
  std::uint64_t first_ = 0;  // where the box begins in it
  std::vector<Extent> extents_;
};

}  // namespace shw
