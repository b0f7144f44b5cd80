// Where the elements of chunks are in their files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/model/checkpoint.h"

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

  // Byte of the storage at the first element of a box.
  std::int64_t begin_of(const Box& box) const;
  // True if the elements of a box are contiguous in the storage, in row-major order.
  bool is_one_byte_run(const Box& box, std::size_t element) const;
};

// The storage as the item's own header describes it.
ChunkStorage storage_of_item(const ItemHeader& header, const ItemPlace& place);

// The item must have the sizes of its chunk's record, and elements as wide.
Status check_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header);

// Reads the item headers of many chunks and calls visit(i, storage) for each chunk that has a
// storage, file by file and from several threads. Returns the error of the first chunk (in order)
// that has none: kDamaged also if the payload does not match the chunk's record. kStop: later
// chunks need not be visited then.
enum class AfterError : std::uint8_t { kContinue, kStop };
Status for_each_storage(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                        const std::function<void(std::size_t, const ChunkStorage&)>& visit,
                        Progress* progress, AfterError after = AfterError::kContinue);

}  // namespace shw
