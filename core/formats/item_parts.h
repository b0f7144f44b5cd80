// Boxes of items one after the other, for who looks at tensors piece by piece.
#pragma once

#include <memory>

#include "core/formats/items.h"

namespace shw {

// For one thread. The item that was asked for last stays open.
class ItemParts {
 public:
  explicit ItemParts(const Checkpoint& checkpoint);
  ItemParts(ItemParts&&) noexcept;
  ~ItemParts();

  // The item's own header: what it holds, whatever the metadata says.
  Result<ItemHeader> header(ChunkId chunk);
  // A box of the item, in the item's own sizes: row-major, as read_chunk() gives the whole. Where
  // the elements lie as they are, only the bytes around the box are read; a view, a compressed or
  // a foreign item is read whole for it.
  Result<Bytes> read(ChunkId chunk, const Box& box);

 private:
  struct Open;
  Status go_to(ChunkId chunk);
  std::unique_ptr<Open> open_;
};

}  // namespace shw
