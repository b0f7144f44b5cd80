// Reads items: the stored bytes of chunks, decoded where they must be. To read one:
//
//   ItemCursor items(checkpoint);     one for each thread: files and headers stay open
//   items.header(chunk)               what the item says of itself
//   items.read(chunk, box, to)        a box, with memory for the box only
//   items.begin_box(chunk, box)       a box as a sequence of bytes: read_at(), is_hole_at()
//
// Every element once, in any order: stream_elements() of element_pass.h. Every stored byte once:
// hash_and_verify() of item_hash.h.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/formats/common/item_reader.h"
#include "core/formats/items/chunk_storage.h"
#include "core/formats/items/decoded_items.h"
#include "core/formats/items/item_access.h"
#include "core/model/checkpoint.h"

namespace shw {

// Default budget for decoded items, about one large expert: decoded items are kept for the next
// box.
inline constexpr std::uint64_t kDecodedForBoxes = std::uint64_t{256} << 20;

// Not thread-safe. The arguments of the constructors must outlive the cursor.
class ItemCursor {
 public:
  // Items that do not fit in `decoded_bytes` are decoded as a stream: boxes in ascending order take
  // one pass, each box before the previous one starts a new pass.
  explicit ItemCursor(const Checkpoint& checkpoint, std::uint64_t decoded_bytes = kDecodedForBoxes);
  // Shares decoded items with the cursors of other threads.
  ItemCursor(const Checkpoint& checkpoint, DecodedItems& decoded);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  ItemFiles& files() { return files_; }
  // Maximum memory of decoded items at any time.
  std::uint64_t peak_decoded_bytes() const { return decoded_->peak_bytes(); }

  // The storage of a chunk, and its bytes if they are stored undecoded. kDamaged if the item has
  // another dtype or shape than its chunk's record.
  Result<ChunkStorage> storage(ChunkId chunk);
  Result<std::shared_ptr<const ByteSource>> stored(const ChunkStorage& storage);
  // The header that the item's file gives, and a box in the shape that it gives; both may differ
  // from the shape in the chunk's record.
  Result<ItemHeader> header(ChunkId chunk);
  Status read_item(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read_item(ChunkId chunk, const Box& box);

  // Reads a box relative to the chunk, row-major and little-endian. Reuses the memory of `to`,
  // because the system clears all pages of new memory.
  Status read(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read(ChunkId chunk, const Box& box);
  // True if the box is in a file hole, so that it reads as zeros; false if that is unknown without
  // reading.
  bool is_hole(ChunkId chunk, const Box& box);

  // Selects a box, relative to the chunk, whose elements are read as a sequence of bytes: directly
  // from the file if they are contiguous there, else from a decoded copy of the box. kDamaged if
  // the item does not match its chunk's record.
  Status begin_box(ChunkId chunk, const Box& box);
  // True if bytes [at, at + length) of the selected box are in a file hole.
  bool is_hole_at(std::uint64_t at, std::uint64_t length) const;
  // Bytes [at, at + length) of the selected box, in `buffer` or in an internal one; valid until the
  // next call.
  Result<BytesView> read_at(std::uint64_t at, std::uint64_t length, Bytes& buffer);

 private:
  struct Item {
    ItemHeader header;
    ChunkStorage storage;
  };
  // A sequential reader of an item that must be decoded.
  struct Stream {
    ChunkId chunk{};
    OpenItem item;
    StorageBytes storage;
  };
  // The box that begin_box() selected.
  struct SelectedBox {
    ChunkId chunk{};
    Box box;
    std::shared_ptr<const ByteSource> source;  // null: the box is in `copy_`
    std::uint64_t first = 0;                   // position of the box in the source
    std::vector<Extent> holes;
  };

  Result<const Item*> item(ChunkId chunk);
  Result<const Stream*> stream(ChunkId chunk);
  Status read_from(ChunkId chunk, const Item& item, const Box& box, Bytes& to);
  Status read_streaming(ChunkId chunk, const Box& box, Bytes& to);
  Result<SelectedBox> selected(ChunkId chunk, const Box& box);

  const Checkpoint& checkpoint_;
  ItemFiles files_;
  std::map<ChunkId, Item> items_;
  std::unique_ptr<DecodedItems> own_;
  DecodedItems* decoded_;
  std::vector<Stream> streams_;  // recently used, the latest last
  std::optional<SelectedBox> selected_;
  Bytes copy_;
};

}  // namespace shw
