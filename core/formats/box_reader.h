// Reads boxes of chunks with memory for the box only, not for the item. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/formats/common/item_reader.h"
#include "core/formats/items.h"

namespace shw {

// Position of a chunk's elements, for reading a box alone: element [0, 0, ..] is at byte `first` of
// the storage, strides are in bytes. Chunks in another form (compressed, another byte order,
// conjugated or negated) are decoded as a whole; the storage is then the result of read_chunk().
struct ChunkStorage {
  bool is_stored = true;
  FileId file = FileId::kNone;
  std::uint64_t offset = 0;  // in the file: of the storage, or of the item
  std::uint64_t length = 0;  // of the storage, or of the decoded elements
  Extents strides;
  std::int64_t first = 0;
  std::optional<std::uint32_t> crc = {};  // CRC-32 of the whole storage according to the item
};
// Reads the header only. Errors as read_chunk(), and kDamaged if the payload does not match the
// chunk's record.
Result<ChunkStorage> storage_of(const Checkpoint& checkpoint, ChunkId chunk);

// Calls visit(i, storage) for each chunk that has a storage, file by file and from several threads.
// Returns the error of the first chunk (in order) that has none. kStop: later chunks need not be
// visited then.
enum class AfterError : std::uint8_t { kGoOn, kStop };
Status each_storage(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                    const std::function<void(std::size_t, const ChunkStorage&)>& visit,
                    Progress* progress, AfterError after = AfterError::kGoOn);

// A cache of decoded items within a budget: neighbouring boxes share items.
class DecodedChunks {
 public:
  DecodedChunks(const Checkpoint& checkpoint, std::uint64_t budget)
      : checkpoint_(checkpoint), budget_(budget) {}
  // Null if decoding needs more than the budget.
  Result<std::shared_ptr<const Bytes>> read(ChunkId chunk, const ItemHeader& header);
  std::uint64_t budget() const { return budget_; }
  // Maximum memory at any time, including the decoder.
  std::uint64_t peak_bytes() const { return peak_; }

 private:
  const Checkpoint& checkpoint_;
  const std::uint64_t budget_;
  std::map<ChunkId, std::shared_ptr<const Bytes>> kept_;
  std::uint64_t bytes_ = 0, peak_ = 0;
};

// Default budget for decoded items, about one large expert: decoded items are kept for the next
// box.
inline constexpr std::uint64_t kDecodedForBoxes = std::uint64_t{256} << 20;

class BoxReader {
 public:
  // Items that do not fit in `decoded_bytes` are decoded as a stream: boxes in ascending order take
  // one pass, each box before the previous one starts a new pass.
  explicit BoxReader(const Checkpoint& checkpoint, std::uint64_t decoded_bytes = kDecodedForBoxes)
      : checkpoint_(checkpoint), decoded_(checkpoint, decoded_bytes) {}
  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::uint64_t decoded_bytes() const { return decoded_.budget(); }
  // Maximum memory of decoded items at any time.
  std::uint64_t peak_decoded_bytes() const { return decoded_.peak_bytes(); }
  // Reads a box relative to the chunk, row-major and little-endian. Reuses the memory of `to`,
  // because the system clears all pages of new memory.
  Status read(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read(ChunkId chunk, const Box& box);
  // The storage of a chunk, and its bytes if they are stored undecoded. kDamaged if the item has
  // another dtype or shape than its chunk's record.
  Result<ChunkStorage> storage(ChunkId chunk);
  Result<std::shared_ptr<const ByteSource>> stored(const ChunkStorage& storage);
  // The item's own header, and a box in the item's shape, whatever the chunk's record says.
  Result<ItemHeader> header(ChunkId chunk);
  Status read_item(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read_item(ChunkId chunk, const Box& box);
  // True if the box is in a file hole, so that it reads as zeros; false if that is unknown without
  // reading.
  bool is_hole(ChunkId chunk, const Box& box);

 private:
  struct Item {
    ItemHeader header;
    ChunkStorage storage;
  };
  Result<const Item*> item(ChunkId chunk);
  // A sequential reader of an item that must be decoded.
  struct StreamCursor {
    ChunkId chunk{};
    OpenItem item;
    StorageBytes storage;
  };
  Status read_from(ChunkId chunk, const Item& item, const Box& box, Bytes& to);
  Status read_streaming(ChunkId chunk, const ItemHeader& header, const Box& box, Bytes& to);
  Result<const StreamCursor*> passing(ChunkId chunk);
  Result<std::shared_ptr<const ByteSource>> open(FileId file);

  const Checkpoint& checkpoint_;
  std::map<ChunkId, Item> items_;
  FileId last_ = FileId::kNone;
  std::shared_ptr<const ByteSource> source_;
  DecodedChunks decoded_;
  std::vector<StreamCursor> passing_;  // recently used, the latest last
};

// Reads a box of a row-major array at `offset` of a file.
Status read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes, const Box& box,
                std::size_t element, Bytes& to);
Result<Bytes> read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes,
                       const Box& box, std::size_t element);

}  // namespace shw
