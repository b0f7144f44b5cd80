#include "core/formats/item_access.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/common/zstd_stream.h"
#include "core/formats/orphan_header.h"

namespace shw {
namespace {

// No item is larger: what a made-up shape can ask of the decompressor ends here.
constexpr std::uint64_t kMostUnpacked = std::uint64_t{64} << 30;
// The archive around a payload takes 1.6 KB; its dtype may be wider than the metadata says.
constexpr std::uint64_t kArchiveRoom = 1 << 20;
constexpr std::uint64_t kWidestItem = 16;
// Of a compressed item, for its header: the local headers and data.pkl, and the directory.
constexpr std::uint64_t kKeptEnds = 64 << 10;

std::uint64_t decompressed_limit(const Checkpoint& checkpoint, ChunkId chunk) {
  auto elements = volume(checkpoint.sizes(chunk));
  auto bytes =
      elements ? checked_mul(static_cast<std::uint64_t>(*elements), kWidestItem) : std::nullopt;
  auto limit = bytes ? checked_add(*bytes, kArchiveRoom) : std::nullopt;
  return std::min(limit.value_or(kMostUnpacked), kMostUnpacked);
}

Result<OpenItem> open_raw(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range) {
  OpenItem item;
  item.header.dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  item.header.sizes = copy_of(checkpoint.sizes(chunk));
  auto elements = volume(item.header.sizes);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                      std::uint64_t{size_of(item.header.dtype)})
                        : std::nullopt;
  if (!bytes || *bytes != range.length)
    return fail(ErrorKind::kDamaged,
                "holds " + std::to_string(range.length) + " bytes, which is not what " +
                    to_text(item.header.sizes) + " of " + std::string(name(item.header.dtype)) +
                    " takes",
                {range.source->name(), range.offset});
  item.header.strides = row_major_strides(item.header.sizes);
  item.header.payload_offset = range.offset;
  item.header.payload_length = range.length;
  item.source = std::move(range.source);
  return item;
}

// Offsets inside a decompressed item mean nothing in the file: the error then stands at the item.
Error at_item(Error error, const ItemRange& range) {
  if (error.place.offset)
    error.message +=
        " (at byte " + std::to_string(*error.place.offset) + " of the decompressed item)";
  error.place.file = range.source->name();
  error.place.offset = range.offset;
  return error;
}

Result<OpenItem> open_archive(const Checkpoint& checkpoint, ChunkId chunk, const ItemRange& range,
                              ItemPart part) {
  auto transforms = checkpoint.transforms(chunk);
  SHW_TRY(ItemRange plain,
          undo_transforms(range, transforms, decompressed_limit(checkpoint, chunk), part, nullptr));
  auto opened = open_torch_item(plain.source, plain.offset, plain.length);
  if (!opened) {
    Error error = std::move(opened).error();
    return tl::unexpected<Error>(transforms.empty() ? std::move(error)
                                                    : at_item(std::move(error), range));
  }
  OpenItem item{std::move(opened->header), plain.source, std::move(opened->zip),
                std::move(opened->storage_key)};
  const ZipEntry* record = item.zip->find("data/" + item.storage_key);
  item.header.compressed = !transforms.empty() || record->deflated;
  return item;
}

}  // namespace

Error naming(Error error, std::string_view tensor) {
  if (error.place.tensor.empty()) error.place.tensor = tensor;
  return error;
}

Result<std::shared_ptr<const ByteSource>> ItemFiles::open(FileId file) {
  if (file == last_ && source_ != nullptr) return source_;
  if (index_of(file) >= checkpoint_.file_count())
    return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
  const FileRow& row = checkpoint_.file(file);
  if (!row.safe)
    return fail(ErrorKind::kDamaged, "the recorded path leaves the checkpoint", {row.path});
  if (checkpoint_.directory() == nullptr)
    return fail(ErrorKind::kIo, "the checkpoint has no directory to read from", {row.path});
  SHW_TRY(source_, checkpoint_.directory()->open(row.path));
  last_ = file;
  return source_;
}

Result<ItemRange> find_item(ItemFiles& files, const ItemPlace& place) {
  SHW_TRY(auto source, files.open(place.file));
  auto offset = narrow<std::uint64_t>(place.offset);
  auto length = narrow<std::uint64_t>(place.length);
  if (!offset || !length)
    return fail(ErrorKind::kDamaged,
                "the item is recorded at byte " + std::to_string(place.offset) + " with " +
                    std::to_string(place.length) + " bytes, and neither can be negative",
                {source->name()});
  if (*offset > source->size() || *length > source->size() - *offset)
    return fail(ErrorKind::kDamaged,
                "ends at byte " + std::to_string(source->size()) + ", but the item takes " +
                    std::to_string(*length) + " bytes from byte " + std::to_string(*offset),
                {source->name(), *offset});
  return ItemRange{std::move(source), *offset, *length};
}

Result<ItemRange> undo_transforms(ItemRange range, std::span<const std::string> transforms,
                                  std::uint64_t limit, ItemPart part, Progress* progress) {
  SHW_CHECK(check_transforms(transforms, range.source->name()));
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    std::shared_ptr<const ByteSource> inner;
    if (part == ItemPart::kHeader && i + 1 == transforms.size()) {
      SHW_TRY(inner, read_zstd_ends(*range.source, range.offset, range.length, limit, kKeptEnds));
    } else {
      SHW_TRY(Bytes bytes, read_zstd(*range.source, range.offset, range.length, limit, progress));
      inner = memory_source(range.source->name(), std::move(bytes));
    }
    range = {inner, 0, inner->size()};
  }
  return range;
}

Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part) {
  auto open = [&]() -> Result<OpenItem> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    SHW_TRY(ItemRange range, find_item(files, *place));
    if (checkpoint.encoding() == Encoding::kRaw)
      return open_raw(checkpoint, chunk, std::move(range));
    return open_archive(checkpoint, chunk, range, part);
  };
  auto item = open();
  if (item) return item;
  return tl::unexpected<Error>(
      naming(std::move(item).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
}

Result<ItemHeader> read_orphan_header(const Checkpoint& checkpoint, ChunkId chunk,
                                      ItemPlace place) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  SHW_TRY(OpenItem item, open_archive(checkpoint, chunk, range, ItemPart::kHeader));
  return std::move(item.header);
}

}  // namespace shw
