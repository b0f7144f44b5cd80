// How the bytes of an item are reached, one row of functions a codec: what items.h asks, whatever
// the format is.
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
#include "core/formats/common/payload_watch.h"
#include "core/io/scratch.h"
#include "core/model/checkpoint.h"

namespace shw {

// How an item is decompressed while it is opened.
struct Decompression {
  // What it is decompressed to goes there, front to back and once; null: it is decompressed as
  // often as it is read from the front.
  std::shared_ptr<ScratchFile> into = nullptr;
  const Progress* progress = nullptr;  // whether somebody wants it stopped
};

// A range of a file that is there.
struct ItemRange {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  const Decompression* decompression = nullptr;
};

// What will be read of an item. With kPassing its payload is read from front to back, so that
// nothing of its length has to be held.
enum class ItemPart : std::uint8_t { kHeader, kPayload, kPassing };

// A chunk's item, opened: its header, and where its payload can be read.
struct OpenItem {
  ItemHeader header;
  std::shared_ptr<const ByteSource> source;  // what payload_offset counts in
  // The storage, where it does not lie in the source as it is: to be read from front to back, or,
  // of a few MiB, bytes [first, last) of it at once. One of the two.
  std::shared_ptr<const ByteSource> storage = nullptr;
  std::function<Result<Bytes>(std::uint64_t first, std::uint64_t last)> stored = {};
  // The bytes that every element has, where all have the same; else empty.
  Bytes alike = {};
};

// Where the storage of an item is read: its first byte is at `offset`.
struct StorageBytes {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
};
// Decoded here and now where its codec has no other way.
Result<StorageBytes> storage_bytes(const OpenItem& item);

// Bytes of an item that stand there as they are, and the checksum that they were saved with.
struct SummedRun {
  std::uint64_t offset = 0, length = 0;  // in the source
  std::uint32_t crc = 0;
  std::string record;  // "archive/data/0"
};

struct ItemReader {
  // With ItemPart::kHeader the payload of a compressed item is not kept. An item is handed out only
  // if its header's view lies inside of its payload.
  Result<OpenItem> (*open)(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                           ItemPart part);
  // Its bytes against the checksums that it has; null where it has none. A payload that lies there
  // as it is passes by `watch`, which may be null.
  Result<DataCheck> (*check)(const ItemRange& range, std::span<const std::string> transforms,
                             std::uint64_t limit, Progress* progress, PayloadWatch* watch);
  // The same for what values that stand in no item of their own refer to: tensors in a tuple, or of
  // kinds that are not read. One answer an object of the checkpoint; null where all have items.
  Status (*check_inlined)(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress) = nullptr;
  // What `check` looks at, for whoever reads all bytes of the item anyway; nothing where some of
  // them have to be decoded first. Of an item without transforms; null: `check` alone can say it.
  Result<std::optional<std::vector<SummedRun>>> (*sums)(const ItemRange& range) = nullptr;
  // Values that stand in no item of their own and are more than their opcodes say, by object, as
  // another file takes them (carried_values.h); null where all have items.
  Status (*carry_inlined)(const Checkpoint& checkpoint,
                          std::map<std::size_t, Result<CarriedValue>>& values,
                          Progress* progress) = nullptr;
};

// The source of an item in a file, decompressed where the chunk has transforms.
Result<ItemRange> undo_transforms(ItemRange range, std::span<const std::string> transforms,
                                  std::uint64_t limit, ItemPart part, Progress* progress);

// A view may repeat elements (stride 0), but torch copies such a view before it saves it: one that
// repeats more than a little was made up.
Status check_repeats(const OpenItem& item);
Status check_repeats(const ItemHeader& header, const std::string& file);

// Elements as they stand in a storage made little-endian, with the signs that torch leaves to the
// reader: whole ones.
bool has_flags(const ItemHeader& header);
Status apply_flags(const OpenItem& item, std::span<std::byte> elements);

// Elements of the payload as read_chunk() promises them, in the header's own sizes.
Result<Bytes> read_elements(const OpenItem& item);

}  // namespace shw
