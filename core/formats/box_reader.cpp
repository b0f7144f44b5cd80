#include "core/formats/box_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/formats/decoded_items.h"
#include "core/formats/item_access.h"
#include "core/formats/item_pass.h"
#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::size_t kStorages = 4096;
// Limit of sequential readers, about 8 MiB each: two sides of a comparison, or the chunks that a
// row of blocks crosses.
constexpr std::size_t kMostPassing = 4;

std::int64_t byte_of_box(std::int64_t first, const Box& box, ExtentsView strides) {
  for (std::size_t d = 0; d < strides.size(); ++d) first += box.offsets[d] * strides[d];
  return first;
}

// The storage as the item's own header describes it; open_item() has checked the view.
ChunkStorage storage_of_item(const ItemHeader& header, const ItemPlace& place) {
  ChunkStorage storage;
  storage.file = place.file;
  storage.is_stored =
      !header.compressed && !header.big_endian && !header.conjugate && !header.negative;
  std::size_t element = size_of(header.dtype);
  auto elements = static_cast<std::uint64_t>(volume(header.sizes).value_or(0));
  if (!storage.is_stored) {
    storage.offset = static_cast<std::uint64_t>(place.offset);
    storage.length = elements * element;
    storage.strides = byte_strides(header.sizes, element);
    return storage;
  }
  storage.offset = header.payload_offset;
  storage.length = header.payload_length;
  storage.strides = header.strides;
  for (std::size_t d = 0; d < storage.strides.size(); ++d) {
    // The stride of a dimension of size 1 is never used.
    bool steps = header.sizes[d] > 1 && elements != 0;
    storage.strides[d] = steps ? header.strides[d] * static_cast<std::int64_t>(element) : 0;
  }
  storage.first = header.storage_offset * static_cast<std::int64_t>(element);
  storage.crc = header.payload_crc;
  return storage;
}

// The item must match its chunk's record.
Status check_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  TensorId tensor = checkpoint.tensor_of(chunk);
  std::size_t element = size_of(checkpoint.dtype(tensor));
  if (same(header.sizes, checkpoint.sizes(chunk)) && size_of(header.dtype) == element &&
      element != 0 && volume(checkpoint.sizes(chunk)))
    return {};
  return tl::unexpected<Error>(not_as_recorded(checkpoint, chunk, header));
}

Result<ChunkStorage> storage_with(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                                  const Progress* progress) {
  const Decompression how{nullptr, progress};
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kHeader, &how));
  SHW_CHECK(check_recorded(checkpoint, chunk, item.header));
  return storage_of_item(item.header, *checkpoint.item(chunk));
}

// Start indices of tasks that open many items, plus the end. Compressed items are decompressed for
// their header, so few of them form a task.
std::vector<std::size_t> header_tasks(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                                      const std::vector<std::uint32_t>& order) {
  constexpr std::size_t kAtOnce = 1024;
  constexpr std::int64_t kDecompressed = 4 << 20;
  std::vector<std::size_t> begins{0};
  std::int64_t compressed = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i - begins.back() == kAtOnce || compressed >= kDecompressed) {
      begins.push_back(i);
      compressed = 0;
    }
    const ChunkId chunk = chunks[order[i]];
    if (checkpoint.transforms(chunk).empty()) continue;
    const std::int64_t length = checkpoint.item(chunk).value_or(ItemPlace{}).length;
    compressed += std::clamp<std::int64_t>(length, 0, kDecompressed);
  }
  begins.push_back(order.size());
  return begins;
}

// Reads a whole item in the item's own shape, whatever the chunk's record says.
Result<Bytes> read_whole_item(const Checkpoint& checkpoint, ChunkId chunk) {
  ItemFiles files(checkpoint);
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, part_to_read(checkpoint, chunk)));
  auto bytes = read_elements(item);
  if (bytes) return bytes;
  return tl::unexpected<Error>(
      naming(std::move(bytes).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
}

}  // namespace

Status read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                    ExtentsView strides, std::size_t element, Bytes& to) {
  auto box = packed(sizes, strides, element);
  auto elements = volume(sizes);
  auto length =
      elements ? checked_mul(*elements, static_cast<std::int64_t>(element)) : std::nullopt;
  if (!box || !length)
    return fail(ErrorKind::kUnsupported, "a box is too large to be read", {source.name()});
  to.resize(static_cast<std::size_t>(box->length));
  SHW_CHECK(gather(source, first, sizes, strides, element, to));
  Extents dense = byte_strides(sizes, element);
  if (*length == 0 || box->strides == dense) return {};
  Bytes out(static_cast<std::size_t>(*length));
  each_canonical_pair(
      pair_of(sizes, box->strides, box->offset, dense, 0),
      [&](const LayoutPair& part) { copy_elements(to.data(), out.data(), part, element); });
  to = std::move(out);
  return {};
}

Result<Bytes> read_strided(const ByteSource& source, std::int64_t first, ExtentsView sizes,
                           ExtentsView strides, std::size_t element) {
  Bytes bytes;
  SHW_CHECK(read_strided(source, first, sizes, strides, element, bytes));
  return bytes;
}

Result<ChunkStorage> storage_of(const Checkpoint& checkpoint, ChunkId chunk) {
  ItemFiles files(checkpoint);
  return storage_with(files, checkpoint, chunk, nullptr);
}

Status each_storage(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                    const std::function<void(std::size_t, const ChunkStorage&)>& visit,
                    Progress* progress, AfterError after) {
  const std::vector<std::uint32_t> order = order_on_disk(checkpoint, chunks);
  const std::vector<std::size_t> begins = header_tasks(checkpoint, chunks, order);
  std::mutex guard;
  std::optional<std::pair<std::uint32_t, Error>> first;
  std::atomic<std::uint32_t> failed{
      UINT32_MAX};  // lowest failed index, if later items are irrelevant
  SHW_CHECK(parallel_for(begins.size() - 1, [&](std::size_t task) {
    ItemFiles files(checkpoint);
    const std::size_t begin = begins[task], end = begins[task + 1];
    std::vector<ChunkId> own;
    for (std::size_t i = begin; i < end; ++i) own.push_back(chunks[order[i]]);
    for (std::size_t i = begin, unread = begin; i < end; ++i) {
      if (is_cancelled(progress)) return Status(cancelled_error());
      if (order[i] > failed.load(std::memory_order_relaxed)) continue;
      if (i >= unread) unread = i + files.read_ahead(std::span(own).subspan(i - begin));
      auto storage = storage_with(files, checkpoint, chunks[order[i]], progress);
      if (storage) {
        visit(order[i], *storage);
        continue;
      }
      std::lock_guard lock(guard);
      if (first && order[i] > first->first) continue;
      first.emplace(order[i], std::move(storage).error());
      if (after == AfterError::kStop) failed = order[i];
    }
    return Status{};
  }));
  if (first) return tl::unexpected<Error>(std::move(first->second));
  return {};
}

Result<std::shared_ptr<const Bytes>> DecodedChunks::read(ChunkId chunk, const ItemHeader& header) {
  if (auto found = kept_.find(chunk); found != kept_.end()) return found->second;
  auto elements = static_cast<std::uint64_t>(volume(header.sizes).value_or(0));
  auto length = checked_mul(elements, std::uint64_t{size_of(header.dtype)});
  const std::uint64_t needed = decoding_bytes(checkpoint_, chunk, length.value_or(UINT64_MAX));
  if (needed > budget_) return nullptr;
  if (needed > budget_ - bytes_) {
    kept_.clear();
    bytes_ = 0;
  }
  peak_ = std::max(peak_, bytes_ + needed);
  SHW_TRY(Bytes bytes, read_whole_item(checkpoint_, chunk));
  bytes_ += bytes.size();
  auto shared = std::make_shared<const Bytes>(std::move(bytes));
  kept_.emplace(chunk, shared);
  return shared;
}

Result<const BoxReader::Item*> BoxReader::item(ChunkId chunk) {
  if (auto found = items_.find(chunk); found != items_.end()) return &found->second;
  SHW_TRY(ItemHeader header, read_item_header(checkpoint_, chunk));
  if (items_.size() >= kStorages) items_.clear();
  ChunkStorage storage = storage_of_item(header, *checkpoint_.item(chunk));
  return &items_.emplace(chunk, Item{std::move(header), std::move(storage)}).first->second;
}

Result<std::shared_ptr<const ByteSource>> BoxReader::open(FileId file) {
  if (file == last_ && source_ != nullptr) return source_;
  ItemFiles files(checkpoint_);
  SHW_TRY(source_, files.open(file));
  last_ = file;
  return source_;
}

Result<ChunkStorage> BoxReader::storage(ChunkId chunk) {
  SHW_TRY(const Item* found, item(chunk));
  SHW_CHECK(check_recorded(checkpoint_, chunk, found->header));
  if (is_as_recorded(checkpoint_, chunk, found->header)) return found->storage;
  return tl::unexpected<Error>(not_as_recorded(checkpoint_, chunk, found->header));
}

Result<std::shared_ptr<const ByteSource>> BoxReader::stored(const ChunkStorage& storage) {
  SHW_TRY(auto file, open(storage.file));
  return window(std::move(file), storage.offset, storage.length);
}

Result<ItemHeader> BoxReader::header(ChunkId chunk) {
  SHW_TRY(const Item* found, item(chunk));
  return found->header;
}

Status BoxReader::read(ChunkId chunk, const Box& box, Bytes& to) {
  SHW_TRY(const Item* found, item(chunk));
  SHW_CHECK(check_recorded(checkpoint_, chunk, found->header));
  return read_from(chunk, *found, box, to);
}

Result<Bytes> BoxReader::read(ChunkId chunk, const Box& box) {
  Bytes bytes;
  SHW_CHECK(read(chunk, box, bytes));
  return bytes;
}

Status BoxReader::read_item(ChunkId chunk, const Box& box, Bytes& to) {
  SHW_TRY(const Item* found, item(chunk));
  return read_from(chunk, *found, box, to);
}

Result<Bytes> BoxReader::read_item(ChunkId chunk, const Box& box) {
  Bytes bytes;
  SHW_CHECK(read_item(chunk, box, bytes));
  return bytes;
}

bool BoxReader::is_hole(ChunkId chunk, const Box& box) {
  auto found = item(chunk);
  if (!found || is_empty(box)) return false;
  const ItemHeader& header = (*found)->header;
  const ChunkStorage& storage = (*found)->storage;
  if (!storage.is_stored || !lies_inside(box.offsets, box.sizes, header.sizes)) return false;
  auto inside = stored(storage);
  if (!inside) return false;
  // Reads from the first to the last byte of the box, gaps included.
  std::int64_t first = byte_of_box(storage.first, box, storage.strides), last = first;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    std::int64_t reach = (box.sizes[d] - 1) * storage.strides[d];
    (reach < 0 ? first : last) += reach;
  }
  auto length = last - first + static_cast<std::int64_t>(size_of(header.dtype));
  return first >= 0 &&
         (*inside)->is_hole(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(length));
}

Result<const BoxReader::StreamCursor*> BoxReader::passing(ChunkId chunk) {
  auto found = std::find_if(passing_.begin(), passing_.end(),
                            [&](const StreamCursor& one) { return one.chunk == chunk; });
  if (found != passing_.end()) {
    std::rotate(found, found + 1, passing_.end());
    return &passing_.back();
  }
  ItemFiles files(checkpoint_);
  SHW_TRY(OpenItem item, open_item(files, checkpoint_, chunk, ItemPart::kPassing));
  SHW_CHECK(check_repeats(item));
  SHW_TRY(StorageBytes storage, storage_bytes(item));
  if (passing_.size() == kMostPassing) passing_.erase(passing_.begin());
  passing_.push_back({chunk, std::move(item), std::move(storage)});
  return &passing_.back();
}

Status BoxReader::read_streaming(ChunkId chunk, const ItemHeader& header, const Box& box,
                                 Bytes& to) {
  auto read = [&]() -> Status {
    SHW_TRY(const StreamCursor* from, passing(chunk));
    const auto element = static_cast<std::int64_t>(size_of(header.dtype));
    const Extents strides = steps_of(header);
    // open_item() has checked the view against the payload.
    const std::int64_t first = header.storage_offset * element;
    auto inside = window(from->storage.source, from->storage.offset, header.payload_length);
    SHW_CHECK(read_strided(*inside, byte_of_box(first, box, strides), box.sizes, strides,
                           static_cast<std::size_t>(element), to));
    return apply_flags(from->item, to);
  };
  Status done = read();
  if (done) return {};
  return tl::unexpected<Error>(
      naming(std::move(done).error(), checkpoint_.fqn(checkpoint_.tensor_of(chunk))));
}

Status BoxReader::read_from(ChunkId chunk, const Item& item, const Box& box, Bytes& to) {
  std::size_t element = size_of(item.header.dtype);
  if (element == 0 || !lies_inside(box.offsets, box.sizes, item.header.sizes))
    return fail(
        ErrorKind::kUsage, "a chunk has no box " + to_text(box),
        Place{.file = {}, .tensor = std::string(checkpoint_.fqn(checkpoint_.tensor_of(chunk)))});
  const ChunkStorage& storage = item.storage;
  std::int64_t first = byte_of_box(storage.first, box, storage.strides);
  if (storage.is_stored) {
    SHW_TRY(auto inside, stored(storage));
    SHW_CHECK(check_repeats(item.header, inside->name()));
    return read_strided(*inside, first, box.sizes, storage.strides, element, to);
  }
  if (is_empty(box)) {
    to.clear();
    return {};
  }
  std::shared_ptr<const Bytes> decoded;
  if (item.header.compressed) {
    SHW_TRY(decoded, decoded_.read(chunk, item.header));
  }
  if (decoded == nullptr) return read_streaming(chunk, item.header, box, to);
  to.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * element);
  each_canonical_pair(
      pair_of(box.sizes, storage.strides, first, byte_strides(box.sizes, element), 0),
      [&](const LayoutPair& part) { copy_elements(decoded->data(), to.data(), part, element); });
  return {};
}

Status read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes, const Box& box,
                std::size_t element, Bytes& to) {
  auto first = narrow<std::int64_t>(offset);
  if (!first || !lies_inside(box.offsets, box.sizes, sizes) || !volume(sizes))
    return fail(ErrorKind::kDamaged, "has no such box", {source.name(), offset});
  Extents strides = byte_strides(sizes, element);
  return read_strided(source, byte_of_box(*first, box, strides), box.sizes, strides, element, to);
}

Result<Bytes> read_box(const ByteSource& source, std::uint64_t offset, ExtentsView sizes,
                       const Box& box, std::size_t element) {
  Bytes bytes;
  SHW_CHECK(read_box(source, offset, sizes, box, element, bytes));
  return bytes;
}

}  // namespace shw
