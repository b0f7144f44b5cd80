// Boxes of chunks, without the rest of them: memory is the box's, not the item's. For one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/formats/common/item_reader.h"
#include "core/formats/items.h"

namespace shw {

// Where the elements of a chunk lie, so that a box of them can be read alone: element [0, 0, ..] at
// byte `first` of the storage, strides in bytes. A chunk that lies nowhere in this form
// (compressed, of another byte order, conjugated or negated) has to be decoded whole; its storage
// is then what read_chunk() makes of it.
struct ChunkStorage {
  bool is_stored = true;
  FileId file = FileId::kNone;
  std::uint64_t offset = 0;  // in that file: of the storage, or of the item
  std::uint64_t length = 0;  // of the storage; of the elements where they are decoded
  Extents strides;
  std::int64_t first = 0;
  std::optional<std::uint32_t> crc = {};  // CRC-32 of the whole storage, as the item has it
};
// Reads the header, not the payload. Errors as of read_chunk(), and kDamaged where the payload is
// not what the metadata says of the chunk.
Result<ChunkStorage> storage_of(const Checkpoint& checkpoint, ChunkId chunk);

// The same of many chunks, file by file and on every core: visit(i, storage) for each that has one,
// from several threads. The error of the first one that has none, in the order of `chunks`.
// kStop: none behind it has to be visited then.
enum class AfterError : std::uint8_t { kGoOn, kStop };
Status each_storage(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                    const std::function<void(std::size_t, const ChunkStorage&)>& visit,
                    Progress* progress, AfterError after = AfterError::kGoOn);

// Items that have to be decoded, kept whole up to a budget: neighbours share their sources.
class DecodedChunks {
 public:
  DecodedChunks(const Checkpoint& checkpoint, std::uint64_t budget)
      : checkpoint_(checkpoint), budget_(budget) {}
  // Nothing where decoding it takes more than the budget.
  Result<std::shared_ptr<const Bytes>> read(ChunkId chunk, const ItemHeader& header);
  std::uint64_t budget() const { return budget_; }
  // The most that was taken at once, with what decoding itself takes.
  std::uint64_t peak_bytes() const { return peak_; }

 private:
  const Checkpoint& checkpoint_;
  const std::uint64_t budget_;
  std::map<ChunkId, std::shared_ptr<const Bytes>> kept_;
  std::uint64_t bytes_ = 0, peak_ = 0;
};

// One large expert's worth: what is decoded stays there for the next box up to this, unless a
// reader is told otherwise.
inline constexpr std::uint64_t kDecodedForBoxes = std::uint64_t{256} << 20;

class BoxReader {
 public:
  // Items that cannot be decoded within `decoded_bytes` are decoded while they are read: boxes that
  // follow each other take one pass over the item, each that lies before the last one a new pass.
  explicit BoxReader(const Checkpoint& checkpoint, std::uint64_t decoded_bytes = kDecodedForBoxes)
      : checkpoint_(checkpoint), decoded_(checkpoint, decoded_bytes) {}
  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::uint64_t decoded_bytes() const { return decoded_.budget(); }
  // The most that was held of items that were decoded whole.
  std::uint64_t peak_decoded_bytes() const { return decoded_.peak_bytes(); }
  // The elements of a chunk-local box, row-major and little-endian. The memory that `to` holds is
  // used again: of blocks that are new each time the system has to clear every page.
  Status read(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read(ChunkId chunk, const Box& box);
  // Where its elements lie, and those bytes where they are stored as they are. kDamaged where the
  // item is of another dtype or other sizes than its chunk is recorded.
  Result<ChunkStorage> storage(ChunkId chunk);
  Result<std::shared_ptr<const ByteSource>> stored(const ChunkStorage& storage);
  // What the item says of itself, and a box in its own sizes, whatever is recorded of the chunk.
  Result<ItemHeader> header(ChunkId chunk);
  Status read_item(ChunkId chunk, const Box& box, Bytes& to);
  Result<Bytes> read_item(ChunkId chunk, const Box& box);
  // The box lies in a hole of its file, so that read_item() of it gives zeros; false where that
  // cannot be told without reading it.
  bool is_hole(ChunkId chunk, const Box& box);

 private:
  struct Item {
    ItemHeader header;
    ChunkStorage storage;
  };
  Result<const Item*> item(ChunkId chunk);
  // An item whose elements do not lie in a file as they are, to be read from front to back.
  struct Passing {
    ChunkId chunk{};
    OpenItem item;
    StorageBytes storage;
  };
  Status read_from(ChunkId chunk, const Item& item, const Box& box, Bytes& to);
  Status read_passing(ChunkId chunk, const ItemHeader& header, const Box& box, Bytes& to);
  Result<const Passing*> passing(ChunkId chunk);
  Result<std::shared_ptr<const ByteSource>> open(FileId file);

  const Checkpoint& checkpoint_;
  std::map<ChunkId, Item> items_;
  FileId last_ = FileId::kNone;
  std::shared_ptr<const ByteSource> source_;
  DecodedChunks decoded_;
  std::vector<Passing> passing_;  // the last ones, the latest behind
};

// The same of any row-major array in a file that begins at `offset`.
Status read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes, const Box& box,
                std::size_t element, Bytes& to);
Result<Bytes> read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes,
                       const Box& box, std::size_t element);

}  // namespace shw
