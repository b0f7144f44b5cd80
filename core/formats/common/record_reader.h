// Reads storages of torch.save files in place: the elements, followed by the zip record's
// descriptor with their CRC. Parts of an ItemReader (item_reader.h).
#pragma once

#include "core/formats/common/item_reader.h"
#include "core/model/format.h"

namespace shw {

Result<OpenItem> open_record(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             ItemPart part);
Result<OpenItem> open_big_endian_record(const Checkpoint& checkpoint, ChunkId chunk,
                                        ItemRange range, ItemPart part);
Result<DataCheck> check_record(const ItemRange& range, std::span<const std::string> transforms,
                               std::uint64_t limit, Progress* progress, PayloadObserver* watch);
Result<std::optional<std::vector<ChecksummedRun>>> record_checksums(const ItemRange& range);

// For checkpoints of several torch.save files.
extern const Codec kZipRecordCodec;
extern const Codec kZipRecordBigCodec;  // written on a big-endian machine

}  // namespace shw
