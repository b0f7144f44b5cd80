#include "core/formats/item_access.h"

#include <fmt/core.h>

namespace shw {

Error naming(Error error, std::string_view tensor) {
  if (error.place.tensor.empty()) error.place.tensor = tensor;
  return error;
}

Error not_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  TensorId tensor = checkpoint.tensor_of(chunk);
  FileId file = checkpoint.item(chunk).value_or(ItemPlace{}).file;
  return {ErrorKind::kDamaged,
          fmt::format("the payload is {} of {}, but the chunk is recorded as {} of {}",
                      to_text(header.sizes), name(header.dtype), to_text(checkpoint.sizes(chunk)),
                      name(checkpoint.dtype(tensor))),
          {file == FileId::kNone ? std::string() : checkpoint.file(file).path,
           header.payload_offset, std::string(checkpoint.fqn(tensor))}};
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
  if (auto range = range_in_file(place, source->size()))
    return ItemRange{std::move(source), range->offset, range->length};
  if (place.offset < 0 || place.length < 0)
    return fail(
        ErrorKind::kDamaged,
        fmt::format("the item is recorded at byte {} with {} bytes, and neither can be negative",
                    place.offset, place.length),
        {source->name()});
  return fail(ErrorKind::kDamaged,
              fmt::format("ends at byte {}, but the item takes {} bytes from byte {}",
                          source->size(), place.length, place.offset),
              {source->name(), static_cast<std::uint64_t>(place.offset)});
}

Result<OpenItem> open_item(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                           ItemPart part) {
  auto open = [&]() -> Result<OpenItem> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    SHW_TRY(ItemRange range, find_item(files, *place));
    const Codec& codec = checkpoint.codec(chunk);
    if (codec.reader == nullptr)
      return fail(ErrorKind::kUnsupported, "holds items of the codec " + std::string(codec.name),
                  {range.source->name(), range.offset});
    return codec.reader->open(checkpoint, chunk, std::move(range), part);
  };
  auto item = open();
  if (item) return item;
  return tl::unexpected<Error>(
      naming(std::move(item).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
}

}  // namespace shw
