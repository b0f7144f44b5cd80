// The codec of items that are torch.save archives.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/common/archive_header_cache.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/common/torch_archive_check.h"
#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// Larger items do not exist: limits what an invalid shape requests from the decompressor.
constexpr std::uint64_t kMaxDecompressed = std::uint64_t{64} << 30;
// The archive around a payload takes 1.6 KB; the dtype may be wider than recorded.
constexpr std::uint64_t kArchiveRoom = 1 << 20;
constexpr std::uint64_t kWidestItem = 16;

std::uint64_t decompressed_limit(const Checkpoint& checkpoint, ChunkId chunk) {
  auto elements = volume(checkpoint.sizes(chunk));
  auto bytes =
      elements ? checked_mul(static_cast<std::uint64_t>(*elements), kWidestItem) : std::nullopt;
  auto limit = bytes ? checked_add(*bytes, kArchiveRoom) : std::nullopt;
  return std::min(limit.value_or(kMaxDecompressed), kMaxDecompressed);
}

// Offsets inside a decompressed item do not exist in the file: the error gets the item's place.
Error with_item_place(Error error, const ItemRange& range) {
  if (error.place.offset)
    error.message += fmt::format(" (at byte {} of the decompressed item)", *error.place.offset);
  error.place.file = range.source->name();
  error.place.offset = range.offset;
  return error;
}

Result<OpenItem> opened_archive(const ItemRange& plain, bool transformed, ZipEnds read,
                                ArchiveHeaderCache* forms) {
  SHW_TRY(TorchItem opened,
          open_torch_item(plain.source, plain.offset, plain.length, std::move(read)));
  if (forms != nullptr) forms->keep(opened);
  OpenItem item{std::move(opened.header), plain.source};
  const ZipEntry& record = *opened.zip.find_storage(opened.storage_key);
  item.header.compressed = transformed || record.deflated;
  if (record.deflated) {
    SHW_TRY(item.storage, opened.zip.source_of(record));
  }
  return item;
}

// Nearly all adjacent items have the same form as the previous one.
Result<OpenItem> open_plain(const ItemRange& range) {
  thread_local ArchiveHeaderCache forms;
  thread_local ZipEnds read;  // reused, because an allocation per item costs as much as the rest
  read.head.clear();
  read.tail.clear();
  SHW_TRY(auto header, forms.find(*range.source, range.offset, range.length, read));
  if (header) return OpenItem{std::move(*header), range.source};
  return opened_archive(range, false, std::move(read), &forms);
}

Result<OpenItem> open_archive(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                              ItemPart part) {
  auto transforms = checkpoint.transforms(chunk);
  if (transforms.empty()) return open_plain(range);
  SHW_TRY(ItemRange plain,
          undo_transforms(range, transforms, decompressed_limit(checkpoint, chunk), part, nullptr));
  auto opened = opened_archive(plain, true, {}, nullptr);
  if (opened) return opened;
  return tl::unexpected<Error>(with_item_place(std::move(opened).error(), range));
}

// The first record whose bytes differ from its CRC in the directory.
Result<DataCheck> check_archive(const ItemRange& plain, Progress* progress,
                                PayloadObserver* watch) {
  SHW_TRY(ZipReader zip, ZipReader::open(plain.source, plain.offset, plain.length));
  DataCheck check;
  for (const ZipEntry& entry : zip.entries()) {
    SHW_TRY(std::uint64_t data, zip.data_offset(entry));
    if (zip.lacks_crcs()) continue;
    SHW_TRY(std::uint32_t actual, zip.crc_of(entry, progress, watch));
    if (actual != entry.crc)
      return DataCheck{DataCheck::Crc::kDiffers, entry.crc, actual, entry.name, data,
                       entry.stored_length};
    check.crc = DataCheck::Crc::kMatches;
    check.expected = entry.crc;
    check.actual = actual;
  }
  // A valid checksum only proves that the text is unchanged.
  SHW_CHECK(check_declared_records(zip));
  return check;
}

Result<DataCheck> check_range(const ItemRange& range, std::span<const std::string> transforms,
                              std::uint64_t limit, Progress* progress, PayloadObserver* watch) {
  SHW_TRY(ItemRange plain,
          undo_transforms(range, transforms, limit, ItemPart::kStreamedPayload, progress));
  auto check = check_archive(plain, progress, watch);
  if (transforms.empty()) return check;
  // Offsets inside a decompressed item do not exist in the file.
  if (!check) {
    Error error = std::move(check).error();
    error.place.offset = range.offset;
    return tl::unexpected<Error>(std::move(error));
  }
  if (check->crc == DataCheck::Crc::kDiffers) {
    check->record_offset = range.offset;
    check->record_length = range.length;
  }
  return check;
}

Result<std::optional<std::vector<ChecksummedRun>>> archive_checksums(const ItemRange& range) {
  SHW_TRY(ZipReader zip, ZipReader::open(range.source, range.offset, range.length));
  std::vector<ChecksummedRun> runs;
  for (const ZipEntry& entry : zip.entries()) {
    SHW_TRY(std::uint64_t data, zip.data_offset(entry));
    if (entry.deflated) return std::nullopt;
    if (!zip.lacks_crcs()) runs.push_back({data, entry.stored_length, entry.crc, entry.name});
  }
  if (zip.lacks_crcs()) SHW_CHECK(check_declared_records(zip));
  return runs;
}

constexpr ItemReader kTorchZipReader{open_archive, check_range, nullptr, archive_checksums};

}  // namespace

constexpr Codec kTorchZipCodec{"torch-zip", &kTorchZipReader};

}  // namespace shw
