#include <algorithm>

#include "core/formats/items/decoded_items.h"
#include "core/formats/items/item_access.h"
#include "core/formats/zip/zip.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Bytes per step; for reordered elements, rows long enough for a read each.
constexpr std::uint64_t kDecodedPiece = std::uint64_t{4} << 20;

// Upper bound of the archive around a payload: 1.6 KB and padding.
constexpr std::uint64_t kAroundPayload = std::uint64_t{16} << 10;

// A range of a scratch file.
struct ScratchRange {
  std::uint64_t offset = 0, length = 0;
};

// A scratch file in memory.
class MemoryScratch final : public ScratchFile {
 public:
  explicit MemoryScratch(std::uint64_t about) { bytes_.reserve(static_cast<std::size_t>(about)); }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    const auto begin = static_cast<std::size_t>(offset);
    if (begin == bytes_.size()) {
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
      return {};
    }
    bytes_.resize(std::max(bytes_.size(), begin + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin));
    return {};
  }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      return fail(ErrorKind::kDamaged, "decodes to fewer bytes than its shape needs", {name_});
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  Bytes take(const ScratchRange& place) {
    bytes_.resize(static_cast<std::size_t>(place.offset + place.length));
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(place.offset));
    return std::move(bytes_);
  }

 private:
  std::string name_ = "(decoded)";
  Bytes bytes_;
};

// An item being decoded.
struct Decoding {
  const OpenItem& item;
  std::shared_ptr<ScratchFile> scratch;
  const Progress* progress;
  DecodedAs as;
};

// Appends bytes [first, last) of the storage.
Result<std::uint64_t> write_storage(const Decoding& decoding, std::uint64_t first,
                                    std::uint64_t last) {
  const OpenItem& item = decoding.item;
  const std::uint64_t begin = decoding.scratch->size();
  if (item.storage == nullptr) {
    SHW_TRY(Bytes all, item.stored(first, last));
    SHW_CHECK(decoding.scratch->write_at(begin, all));
    return begin;
  }
  for (std::uint64_t at = first; at < last;) {
    if (is_cancelled(decoding.progress)) return cancelled_error();
    const std::uint64_t next = std::min(at + kDecodedPiece, last);
    SHW_TRY(Bytes piece, read_bytes(*item.storage, at, next - at));
    SHW_CHECK(decoding.scratch->write_at(begin + (at - first), piece));
    at = next;
  }
  return begin;
}

// Appends the elements in row-major order with flags applied.
Result<ScratchRange> write_elements_row_major(const Decoding& decoding, const StorageBytes& from) {
  const ItemHeader& header = decoding.item.header;
  const auto most = static_cast<std::int64_t>(kDecodedPiece / size_of(header.dtype));
  ScratchRange place{decoding.scratch->size()};
  for (const Box& slab : split_into_row_boxes(header.sizes, most)) {
    if (is_cancelled(decoding.progress)) return cancelled_error();
    Bytes bytes;
    SHW_CHECK(read_elements_of(decoding.item, *from.source, static_cast<std::int64_t>(from.offset),
                               slab, bytes));
    SHW_CHECK(decoding.scratch->write_at(place.offset + place.length, bytes));
    place.length += bytes.size();
  }
  return place;
}

// The decompressed bytes are in memory, so their checksum is cheap.
Status check_payload(const OpenItem& item) {
  const ItemHeader& header = item.header;
  const bool is_there = header.compressed && item.storage == nullptr && !item.stored;
  if (!is_there || !header.payload_crc) return {};
  SHW_TRY(const std::uint32_t crc,
          crc_of_range(*item.source, header.payload_offset, header.payload_length, nullptr));
  if (crc == *header.payload_crc) return {};
  return fail(ErrorKind::kDamaged, "the decompressed data does not match its checksum",
              {item.source->name(), header.payload_offset});
}

Result<ScratchRange> write_elements(const Decoding& decoding) {
  const OpenItem& item = decoding.item;
  const ItemHeader& header = item.header;
  const auto size = static_cast<std::uint64_t>(size_of(header.dtype));
  const auto needed = storage_needed(header.sizes, header.strides, header.storage_offset);
  const auto elements = volume(header.sizes);
  if (!needed || !elements || size == 0)
    return fail(ErrorKind::kDamaged, "has impossible sizes or strides",
                {item.source->name(), header.payload_offset});
  if (*elements == 0) return ScratchRange{};
  SHW_CHECK(check_repeats(item));
  if (decoding.as == DecodedAs::kAsRecordedForm) SHW_CHECK(check_payload(item));
  // open_item() has checked the view against the payload.
  const std::uint64_t first = static_cast<std::uint64_t>(header.storage_offset) * size;
  StorageBytes from{item.source, header.payload_offset + first};
  if (item.storage != nullptr || item.stored) {
    from.source = decoding.scratch;
    SHW_TRY(from.offset,
            write_storage(decoding, first, static_cast<std::uint64_t>(*needed) * size));
  }
  // Compressed items are in the scratch file by now.
  if (header.compressed && is_row_major(header.sizes, header.strides) && !has_flags(header))
    return ScratchRange{from.offset, static_cast<std::uint64_t>(*elements) * size};
  return write_elements_row_major(decoding, from);
}

// Errors inside decoded bytes are errors of the item.
Error place_error_at_item(Error error, const Checkpoint& checkpoint, ChunkId chunk,
                          const std::string& scratch) {
  const auto item = checkpoint.item(chunk);
  if (item && error.kind != ErrorKind::kIo && error.place.file == scratch) {
    error.place.file = checkpoint.file(item->file).path;
    error.place.offset = static_cast<std::uint64_t>(item->offset);
  }
  return naming(std::move(error), checkpoint.fqn(checkpoint.tensor_of(chunk)));
}

// The range of the decoded elements.
Result<ScratchRange> decode_into(const Checkpoint& checkpoint, ChunkId chunk,
                                 const std::shared_ptr<ScratchFile>& scratch,
                                 const Progress* progress, DecodedAs as) {
  ItemFiles files(checkpoint);
  const Decompression how{scratch, progress};
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kStreamedPayload, &how));
  if (as == DecodedAs::kAsRecordedForm && !same(item.header.sizes, checkpoint.sizes(chunk)))
    return tl::unexpected<Error>(recorded_mismatch_error(checkpoint, chunk, item.header));
  auto place = write_elements({item, scratch, progress, as});
  if (place) return place;
  return tl::unexpected<Error>(
      place_error_at_item(std::move(place).error(), checkpoint, chunk, scratch->name()));
}

}  // namespace

Result<std::shared_ptr<const ByteSource>> decode_item(const Checkpoint& checkpoint, ChunkId chunk,
                                                      std::shared_ptr<ScratchFile> scratch,
                                                      const Progress* progress) {
  SHW_TRY(ScratchRange place,
          decode_into(checkpoint, chunk, scratch, progress, DecodedAs::kAsRecordedForm));
  return window(std::move(scratch), place.offset, place.length);
}

Result<Bytes> decode_item(const Checkpoint& checkpoint, ChunkId chunk, std::uint64_t length,
                          const Progress* progress, DecodedAs as) {
  auto scratch = std::make_shared<MemoryScratch>(length + kAroundPayload);
  SHW_TRY(ScratchRange place, decode_into(checkpoint, chunk, scratch, progress, as));
  return scratch->take(place);
}

}  // namespace shw
