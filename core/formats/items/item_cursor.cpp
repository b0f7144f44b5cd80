#include "core/formats/items/item_cursor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::size_t kMaxItems = 4096;
// Limit of sequential readers, about 8 MiB each: two sides of a comparison, or the chunks that a
// row of blocks crosses.
constexpr std::size_t kMaxStreams = 4;

}  // namespace

ItemCursor::ItemCursor(const Checkpoint& checkpoint, std::uint64_t decoded_bytes)
    : checkpoint_(checkpoint),
      files_(checkpoint),
      own_(std::make_unique<DecodedItems>(decoded_bytes, nullptr, DecodedItems::Use::kOneThread)),
      decoded_(own_.get()) {}

ItemCursor::ItemCursor(const Checkpoint& checkpoint, DecodedItems& decoded)
    : checkpoint_(checkpoint), files_(checkpoint), decoded_(&decoded) {}

Result<const ItemCursor::Item*> ItemCursor::item(ChunkId chunk) {
  if (auto found = items_.find(chunk); found != items_.end()) return &found->second;
  SHW_TRY(OpenItem opened, open_item(files_, checkpoint_, chunk, ItemPart::kHeader));
  if (items_.size() >= kMaxItems) items_.clear();
  ChunkStorage storage = storage_of_item(opened.header, *checkpoint_.item(chunk));
  return &items_.emplace(chunk, Item{std::move(opened.header), std::move(storage)}).first->second;
}

Result<ItemHeader> ItemCursor::header(ChunkId chunk) {
  SHW_TRY(const Item* found, item(chunk));
  return found->header;
}

Result<ChunkStorage> ItemCursor::storage(ChunkId chunk) {
  SHW_TRY(const Item* found, item(chunk));
  SHW_CHECK(check_recorded(checkpoint_, chunk, found->header));
  if (matches_record(checkpoint_, chunk, found->header)) return found->storage;
  return tl::unexpected<Error>(recorded_mismatch_error(checkpoint_, chunk, found->header));
}

Result<std::shared_ptr<const ByteSource>> ItemCursor::stored(const ChunkStorage& storage) {
  SHW_TRY(auto file, files_.open(storage.file));
  return window(std::move(file), storage.offset, storage.length);
}

Status ItemCursor::read(ChunkId chunk, const Box& box, Bytes& to) {
  SHW_TRY(const Item* found, item(chunk));
  SHW_CHECK(check_recorded(checkpoint_, chunk, found->header));
  return read_from(chunk, *found, box, to);
}

Result<Bytes> ItemCursor::read(ChunkId chunk, const Box& box) {
  Bytes bytes;
  SHW_CHECK(read(chunk, box, bytes));
  return bytes;
}

Status ItemCursor::read_item(ChunkId chunk, const Box& box, Bytes& to) {
  SHW_TRY(const Item* found, item(chunk));
  return read_from(chunk, *found, box, to);
}

Result<Bytes> ItemCursor::read_item(ChunkId chunk, const Box& box) {
  Bytes bytes;
  SHW_CHECK(read_item(chunk, box, bytes));
  return bytes;
}

bool ItemCursor::is_hole(ChunkId chunk, const Box& box) {
  auto found = item(chunk);
  if (!found || is_empty(box)) return false;
  const ItemHeader& header = (*found)->header;
  const ChunkStorage& storage = (*found)->storage;
  if (!storage.is_stored || !is_inside(box.offsets, box.sizes, header.sizes)) return false;
  auto inside = stored(storage);
  if (!inside) return false;
  // Reads from the first to the last byte of the box, gaps included.
  std::int64_t first = storage.begin_of(box), last = first;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    std::int64_t reach = (box.sizes[d] - 1) * storage.strides[d];
    (reach < 0 ? first : last) += reach;
  }
  auto length = last - first + static_cast<std::int64_t>(size_of(header.dtype));
  return first >= 0 &&
         (*inside)->is_hole(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(length));
}

Result<const ItemCursor::Stream*> ItemCursor::stream(ChunkId chunk) {
  auto found = std::find_if(streams_.begin(), streams_.end(),
                            [&](const Stream& one) { return one.chunk == chunk; });
  if (found != streams_.end()) {
    std::rotate(found, found + 1, streams_.end());
    return &streams_.back();
  }
  SHW_TRY(OpenItem item, open_item(files_, checkpoint_, chunk, ItemPart::kStreamedPayload));
  SHW_CHECK(check_repeats(item));
  SHW_TRY(StorageBytes storage, storage_bytes(item));
  if (streams_.size() == kMaxStreams) streams_.erase(streams_.begin());
  streams_.push_back({chunk, std::move(item), std::move(storage)});
  return &streams_.back();
}

Status ItemCursor::read_streaming(ChunkId chunk, const Box& box, Bytes& to) {
  auto read = [&]() -> Status {
    SHW_TRY(const Stream* from, stream(chunk));
    const ItemHeader& header = from->item.header;
    // open_item() has checked the view against the payload.
    const std::int64_t first =
        header.storage_offset * static_cast<std::int64_t>(size_of(header.dtype));
    auto inside = window(from->storage.source, from->storage.offset, header.payload_length);
    return read_elements_of(from->item, *inside, first, box, to);
  };
  Status done = read();
  if (done) return {};
  return tl::unexpected<Error>(
      naming(std::move(done).error(), checkpoint_.fqn(checkpoint_.tensor_of(chunk))));
}

Status ItemCursor::read_from(ChunkId chunk, const Item& item, const Box& box, Bytes& to) {
  const std::size_t element = size_of(item.header.dtype);
  if (element == 0 || !is_inside(box.offsets, box.sizes, item.header.sizes))
    return fail(
        ErrorKind::kUsage, "a chunk has no box " + to_text(box),
        Place{.file = {}, .tensor = std::string(checkpoint_.fqn(checkpoint_.tensor_of(chunk)))});
  const ChunkStorage& storage = item.storage;
  const std::int64_t first = storage.begin_of(box);
  if (storage.is_stored) {
    SHW_TRY(auto inside, stored(storage));
    SHW_CHECK(check_repeats(item.header, inside->name()));
    return read_strided(*inside, first, box.sizes, storage.strides, element, to);
  }
  if (is_empty(box)) {
    to.clear();
    return {};
  }
  // Boxes of other encodings are read alone, without decoding the whole item.
  if (!item.header.compressed || !decoded_->has_room_for(checkpoint_, chunk, storage.length))
    return read_streaming(chunk, box, to);
  SHW_TRY(auto decoded, decoded_->read(checkpoint_, chunk, storage.length));
  if (decoded->size() != storage.length)
    return fail(ErrorKind::kDamaged, "decodes to a number of bytes that differs from its header");
  to.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * element);
  for_each_canonical_pair(
      pair_of(box.sizes, storage.strides, first, byte_strides(box.sizes, element), 0),
      [&](const LayoutPair& part) { copy_elements(decoded->data(), to.data(), part, element); });
  return {};
}

Result<ItemCursor::SelectedBox> ItemCursor::selected(ChunkId chunk, const Box& box) {
  SelectedBox selected{chunk, box, nullptr, 0, {}};
  const std::size_t element = size_of(checkpoint_.dtype(checkpoint_.tensor_of(chunk)));
  SHW_TRY(ChunkStorage storage, this->storage(chunk));
  if (!storage.is_stored || !storage.is_one_byte_run(box, element)) {
    SHW_CHECK(read(chunk, box, copy_));
    return selected;
  }
  SHW_TRY(selected.source, stored(storage));
  // open_item() has checked the view against the payload.
  selected.first = static_cast<std::uint64_t>(storage.begin_of(box));
  selected.holes = selected.source->extents(
      selected.first, static_cast<std::uint64_t>(*volume(box.sizes)) * element);
  std::erase_if(selected.holes, [](const Extent& extent) { return !extent.hole; });
  return selected;
}

Status ItemCursor::begin_box(ChunkId chunk, const Box& box) {
  if (selected_ && selected_->chunk == chunk && selected_->box == box) return {};
  selected_.reset();
  SHW_TRY(selected_, selected(chunk, box));
  return {};
}

bool ItemCursor::is_hole_at(std::uint64_t at, std::uint64_t length) const {
  const std::uint64_t begin = selected_->first + at, end = begin + length;
  return std::any_of(selected_->holes.begin(), selected_->holes.end(), [&](const Extent& hole) {
    return hole.offset <= begin && end - hole.offset <= hole.length;
  });
}

Result<BytesView> ItemCursor::read_at(std::uint64_t at, std::uint64_t length, Bytes& buffer) {
  if (selected_->source == nullptr)
    return BytesView(copy_).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length));
  buffer.resize(static_cast<std::size_t>(length));
  SHW_CHECK(selected_->source->read(selected_->first + at, buffer));
  return BytesView(buffer);
}

}  // namespace shw
