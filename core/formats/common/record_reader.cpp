#include "core/formats/common/record_reader.h"

#include <algorithm>
#include <optional>

#include "core/base/little_endian.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/common/torch_file_values.h"
#include "core/formats/zip/zip.h"

namespace shw {
namespace {

constexpr std::uint32_t kRecordDescriptor = 0x08074b50;
constexpr std::uint64_t kLongDescriptor = 24;

// The CRC in the data descriptor; nullopt without a descriptor of this length or without a CRC.
// torch writes one for every non-empty record.
Result<std::optional<std::uint32_t>> trailing_crc(const ItemRange& range) {
  using Crc = std::optional<std::uint32_t>;
  std::uint64_t at = range.offset + range.length;
  SHW_TRY(Bytes bytes,
          read_bytes(*range.source, at, std::min(kLongDescriptor, range.source->size() - at)));
  if (bytes.size() < 16 || load_little<std::uint32_t>(bytes) != kRecordDescriptor) return Crc{};
  auto crc = load_little<std::uint32_t>(bytes, 4);
  auto is_length = [&](auto stored, auto length) {
    return std::uint64_t{stored} == range.length && std::uint64_t{length} == range.length;
  };
  bool fits =
      is_length(load_little<std::uint32_t>(bytes, 8), load_little<std::uint32_t>(bytes, 12));
  if (!fits && bytes.size() == kLongDescriptor)
    fits = is_length(load_little<std::uint64_t>(bytes, 8), load_little<std::uint64_t>(bytes, 16));
  return fits && crc != 0 ? Crc(crc) : Crc{};
}

// Looks up the record in the archive's directory: slow, used only without a descriptor.
Result<std::optional<ZipEntry>> entry_of(const ItemRange& range) {
  SHW_TRY(bool is_bare, is_legacy_torch_file(*range.source));
  if (is_bare) return std::nullopt;
  SHW_TRY(ZipReader zip, ZipReader::open(range.source, 0, range.source->size()));
  const ZipEntry* nearest = nullptr;
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.header_offset < range.offset &&
        (nearest == nullptr || entry.header_offset > nearest->header_offset))
      nearest = &entry;
  }
  if (nearest == nullptr) return std::nullopt;
  SHW_TRY(std::uint64_t data, zip.data_offset(*nearest));
  return data == range.offset && nearest->length == range.length ? std::optional(*nearest)
                                                                 : std::nullopt;
}

// The CRC of a record from its descriptor or the archive's directory.
Result<std::optional<std::uint32_t>> crc_of_record(const ItemRange& range) {
  SHW_TRY(auto crc, trailing_crc(range));
  if (crc) return crc;
  SHW_TRY(auto entry, entry_of(range));
  return entry && entry->crc != 0 ? std::optional(entry->crc) : std::nullopt;
}

}  // namespace

Result<OpenItem> open_record(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             ItemPart part) {
  SHW_TRY(auto crc, trailing_crc(range));
  SHW_TRY(OpenItem item, kRawCodec.reader->open(checkpoint, chunk, std::move(range), part));
  item.header.payload_crc = crc;
  return item;
}

Result<OpenItem> open_big_endian_record(const Checkpoint& checkpoint, ChunkId chunk,
                                        ItemRange range, ItemPart part) {
  SHW_TRY(OpenItem item, open_record(checkpoint, chunk, std::move(range), part));
  item.header.big_endian = true;
  return item;
}

Result<DataCheck> check_record(const ItemRange& range, std::span<const std::string>, std::uint64_t,
                               Progress* progress, PayloadObserver* watch) {
  DataCheck check;
  if (range.length == 0) {
    check.crc = DataCheck::Crc::kMatches;
    return check;
  }
  SHW_TRY(auto expected, crc_of_record(range));
  if (!expected) return check;
  check.expected = *expected;
  SHW_TRY(check.actual, crc_of_range(*range.source, range.offset, range.length, progress, watch));
  check.crc = check.actual == check.expected ? DataCheck::Crc::kMatches : DataCheck::Crc::kDiffers;
  if (check.crc == DataCheck::Crc::kMatches) return check;
  auto entry = entry_of(range);
  check.record = entry && *entry ? (*entry)->name : "with its elements";
  check.record_offset = range.offset;
  check.record_length = range.length;
  return check;
}

Result<std::optional<std::vector<ChecksummedRun>>> record_checksums(const ItemRange& range) {
  std::vector<ChecksummedRun> runs;
  if (range.length == 0) return runs;
  SHW_TRY(auto crc, crc_of_record(range));
  if (crc) runs.push_back({range.offset, range.length, *crc, "of the archive"});
  return runs;
}

namespace {
constexpr ItemReader kZipRecordReader{open_record, check_record, nullptr, record_checksums,
                                      carry_values_of_torch_files};
constexpr ItemReader kZipRecordBigReader{open_big_endian_record, check_record, nullptr,
                                         record_checksums, carry_values_of_torch_files};
}  // namespace

constexpr Codec kZipRecordCodec{"zip-record", &kZipRecordReader, true};
constexpr Codec kZipRecordBigCodec{"zip-record-big-endian", &kZipRecordBigReader, true};

}  // namespace shw
