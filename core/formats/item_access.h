// How items.h finds and opens what a chunk points to. Inside core/formats only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/formats/common/zip.h"
#include "core/formats/items.h"

namespace shw {

// Opens the data files of one checkpoint for one thread. The last one stays open: items are asked
// for file by file, so that a thousand files never mean a thousand descriptors.
class ItemFiles {
 public:
  explicit ItemFiles(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  Result<std::shared_ptr<const ByteSource>> open(FileId file);

 private:
  const Checkpoint& checkpoint_;
  FileId last_ = FileId::kNone;
  std::shared_ptr<const ByteSource> source_;
};

// A range of a file that is there.
struct ItemRange {
  std::shared_ptr<const ByteSource> source;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place);

enum class ItemPart : std::uint8_t { kHeader, kPayload };

// A chunk's item, opened: its header, and where its payload can be read.
struct OpenItem {
  ItemHeader header;
  std::shared_ptr<const ByteSource> source;  // what payload_offset counts in
  std::optional<ZipReader> zip;              // nothing for raw items
  std::string storage_key;
};
// With ItemPart::kHeader the payload of a compressed item is not kept.
Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part);

// The source of an archive in a file, decompressed where the chunk has transforms.
Result<ItemRange> undo_transforms(ItemRange range, std::span<const std::string> transforms,
                                  std::uint64_t limit, ItemPart part, Progress* progress);

// Elements of the payload as read_chunk() promises them, in the header's own sizes.
Result<Bytes> read_elements(const OpenItem& item);

// The error with the tensor named in its place.
Error naming(Error error, std::string_view tensor);

}  // namespace shw
