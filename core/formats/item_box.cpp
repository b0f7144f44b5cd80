// A part of an item: only the bytes around it are read, however large the item is, where its
// elements lie as they are.
#include "core/base/checked.h"
#include "core/formats/box_reader.h"
#include "core/formats/item_access.h"
#include "core/formats/item_parts.h"
#include "core/formats/items.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

Result<Bytes> read_part(const OpenItem& item, const Box& box) {
  const ItemHeader& header = item.header;
  std::size_t element = size_of(header.dtype);
  return read_box(
      *item.source,
      header.payload_offset + static_cast<std::uint64_t>(header.storage_offset) * element,
      header.sizes, box, element);
}

// The box out of an item that was put in order first.
Bytes cut_out(BytesView all, const ItemHeader& header, const Box& box) {
  std::size_t element = size_of(header.dtype);
  Extents strides = row_major_strides(header.sizes), dense = row_major_strides(box.sizes);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) first += box.offsets[d] * strides[d];
  Bytes out(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * element);
  if (!out.empty()) copy_strided({all, strides, first}, {out, dense, 0}, box.sizes, element);
  return out;
}

// Every element lies in the file as read_chunk() would give it, one row after the other.
bool lies_as_it_is(const OpenItem& item) {
  const ItemHeader& header = item.header;
  if (header.big_endian || header.conjugate || header.negative || item.stored) return false;
  if (!is_row_major(header.sizes, header.strides)) return false;
  auto needed = storage_needed(header.sizes, header.strides, header.storage_offset);
  auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed),
                                    std::uint64_t{size_of(header.dtype)})
                      : std::nullopt;
  return bytes && *bytes <= header.payload_length;
}

}  // namespace

Result<Bytes> read_raw_box(const Checkpoint& checkpoint, ChunkId chunk, const Box& box) {
  ItemFiles files(checkpoint);
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kPayload));
  Place place{item.source->name(), item.header.payload_offset,
              std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))};
  if (!checkpoint.codec(chunk).lies_bare)
    return fail(ErrorKind::kUnsupported, "is no raw item, and is read whole", std::move(place));
  if (!lies_inside(box.offsets, box.sizes, item.header.sizes))
    return fail(ErrorKind::kUsage, "has no such box", std::move(place));
  if (lies_as_it_is(item)) return read_part(item, box);
  SHW_TRY(Bytes all, read_elements(item));
  return cut_out(all, item.header, box);
}

struct ItemParts::Open {
  explicit Open(const Checkpoint& of) : checkpoint(of), files(of) {}
  const Checkpoint& checkpoint;
  ItemFiles files;
  std::optional<ChunkId> at;
  std::optional<OpenItem> item;
  std::optional<Bytes> all;  // of an item that is read whole
};

ItemParts::ItemParts(const Checkpoint& checkpoint) : open_(std::make_unique<Open>(checkpoint)) {}
ItemParts::ItemParts(ItemParts&&) noexcept = default;
ItemParts::~ItemParts() = default;

Status ItemParts::go_to(ChunkId chunk) {
  if (open_->at == chunk && open_->item) return {};
  open_->at.reset();
  open_->all.reset();
  SHW_TRY(open_->item, open_item(open_->files, open_->checkpoint, chunk, ItemPart::kPayload));
  open_->at = chunk;
  return {};
}

Result<ItemHeader> ItemParts::header(ChunkId chunk) {
  SHW_CHECK(go_to(chunk));
  return open_->item->header;
}

Result<Bytes> ItemParts::read(ChunkId chunk, const Box& box) {
  SHW_CHECK(go_to(chunk));
  const ItemHeader& header = open_->item->header;
  if (!lies_inside(box.offsets, box.sizes, header.sizes))
    return fail(ErrorKind::kUsage, "has no such box",
                {open_->item->source->name(), header.payload_offset, {}});
  if (lies_as_it_is(*open_->item)) return read_part(*open_->item, box);
  if (!open_->all) {
    SHW_TRY(open_->all, read_elements(*open_->item));
  }
  return cut_out(*open_->all, header, box);
}

}  // namespace shw
