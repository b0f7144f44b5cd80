// The interface of a codec: a row of functions that items.h calls, independent of the
// format.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/carried_storages.h"
#include "core/formats/common/item_header.h"
#include "core/formats/zip/payload_watch.h"
#include "core/io/scratch.h"
#include "core/model/checkpoint.h"

namespace shw {

// Options for decompression while opening an item.
struct Decompression {
  // Receives the decompressed bytes once, in order; null: decompressed again for each sequential
  // read.
  std::shared_ptr<ScratchFile> into = nullptr;
  const Progress* progress = nullptr;  // checked for cancellation
};

// An existing byte range of a file.
struct ItemRange {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  const Decompression* decompression = nullptr;
};

// The part of an item that will be read. With kStreamedPayload the payload is read sequentially, so
// that it is never in memory as a whole.
enum class ItemPart : std::uint8_t { kHeader, kPayload, kStreamedPayload };

// An open item: its header and the source of its payload.
struct OpenItem {
  ItemHeader header;
  std::shared_ptr<const ByteSource> source;  // source in which payload_offset counts
  // The storage if it is not stored verbatim in `source`: as a sequential stream, or for a few MiB
  // as a memory range.
  std::shared_ptr<const ByteSource> storage = nullptr;
  std::function<Result<Bytes>(std::uint64_t first, std::uint64_t last)> stored = {};
  // The bytes of each element if all are equal; else empty.
  Bytes alike = {};
};

// The source of an item's storage: its first byte is at `offset`.
struct StorageBytes {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
};
// The stored bytes of the item's storage. Codecs that cannot decode while reading decode the whole
// item into memory here.
Result<StorageBytes> storage_bytes(const OpenItem& item);

// Verbatim bytes of an item with their saved checksum.
struct ChecksummedRun {
  std::uint64_t offset = 0, length = 0;  // in the source
  std::uint32_t crc = 0;
  std::string record;  // "archive/data/0"
};

struct ItemReader {
  // With ItemPart::kHeader the payload of a compressed item is not kept. Fails if the header's view
  // exceeds the payload.
  Result<OpenItem> (*open)(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                           ItemPart part);
  // Verifies the item's checksums; null if the codec has none. A verbatim payload is shown to
  // `watch`, which may be null.
  Result<DataCheck> (*check)(const ItemRange& range, std::span<const std::string> transforms,
                             std::uint64_t limit, Progress* progress, PayloadObserver* watch);
  // Verifies data referenced by values without an item (tensors in a tuple, unsupported kinds). One
  // result per entry; null if all entries have items.
  Status (*check_inlined)(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress) = nullptr;
  // The checksummed runs of an item, so that code that reads all bytes anyway can verify them;
  // nullopt if some must be decoded. Only for items without transforms; null: use `check`.
  Result<std::optional<std::vector<ChecksummedRun>>> (*sums)(const ItemRange& range) = nullptr;
  // Values of entries without an item of their own for which opcodes are not enough, by entry, in a
  // form that other files can store (carried_values.h); null if all entries have items.
  Status (*carry_inlined)(const Checkpoint& checkpoint,
                          std::map<std::size_t, Result<CarriedValue>>& values,
                          Progress* progress) = nullptr;
};

// The source of an item, decompressed if the chunk has transforms.
Result<ItemRange> undo_transforms(ItemRange range, std::span<const std::string> transforms,
                                  std::uint64_t limit, ItemPart part, Progress* progress);

// Rejects views that repeat elements (stride 0) more than slightly: torch copies such views before
// saving.
Status check_repeats(const OpenItem& item);
Status check_repeats(const ItemHeader& header, const std::string& file);

// Converts whole elements of a storage to little-endian and applies the sign flags that torch
// leaves to the reader.
bool has_flags(const ItemHeader& header);
Status apply_flags(const OpenItem& item, std::span<std::byte> elements);

// The elements of the payload as read_chunk() returns them, in the header's shape.
Result<Bytes> read_elements(const OpenItem& item);

}  // namespace shw
