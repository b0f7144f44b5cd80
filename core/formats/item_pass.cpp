#include "core/formats/item_pass.h"

#include <algorithm>
#include <tuple>

#include "core/base/hash.h"
#include "core/formats/hash_ranges.h"
#include "core/formats/item_access.h"
#include "core/formats/items.h"
#include "core/io/read_through.h"
#include "core/tensor/tile_fingerprint.h"

namespace shw {
namespace {

tl::unexpected<Error> not_the_chunk(const Checkpoint& checkpoint, ChunkId chunk,
                                    const std::string& why) {
  auto item = checkpoint.item(chunk);
  return fail(ErrorKind::kDamaged, why,
              {item ? checkpoint.file(item->file).path : std::string(), std::nullopt,
               std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))});
}

// Bytes of an item as they pass: all of them into the hash, those of the payload into the
// fingerprint too.
struct PassingItem {
  TileFingerprint& elements;
  std::uint64_t at, begin, end;  // in the source; the payload is [begin, end)
  RunningHash hash{};

  Status take(BytesView bytes) {
    hash.add(bytes);
    std::uint64_t next = at + bytes.size();
    std::uint64_t low = std::max(at, begin), high = std::min(next, end);
    if (low < high)
      elements.add(
          bytes.subspan(static_cast<std::size_t>(low - at), static_cast<std::size_t>(high - low)));
    at = next;
    return {};
  }
};

}  // namespace

std::vector<std::uint32_t> order_on_disk(const Checkpoint& checkpoint,
                                         std::span<const ChunkId> chunks) {
  std::vector<std::tuple<FileId, std::int64_t, std::uint32_t>> places;
  places.reserve(chunks.size());
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const ItemPlace item = checkpoint.item(chunks[i]).value_or(ItemPlace{});
    places.emplace_back(item.file, item.offset, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::uint32_t> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(std::get<std::uint32_t>(place));
  return order;
}

std::vector<ChunkId> chunks_on_disk(const Checkpoint& checkpoint) {
  std::vector<ChunkId> chunks;
  chunks.reserve(checkpoint.chunk_count());
  for (ChunkId chunk : checkpoint.chunks()) chunks.push_back(chunk);
  std::vector<ChunkId> as_they_lie;
  as_they_lie.reserve(chunks.size());
  for (std::uint32_t i : order_on_disk(checkpoint, chunks)) as_they_lie.push_back(chunks[i]);
  return as_they_lie;
}

ItemPasses::ItemPasses(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(std::make_unique<ItemFiles>(checkpoint)) {}
ItemPasses::~ItemPasses() = default;

Result<Hash128> ItemPasses::hash(const ItemPlace& place, Progress* progress) {
  files_->read_around(place);
  SHW_TRY(ItemRange range, find_item(*files_, place));
  const ByteRange bytes{range.offset, range.length};
  return hash_of_ranges(*range.source, std::span(&bytes, 1), progress);
}

Result<ItemPass> ItemPasses::over(ChunkId chunk, Progress* progress) {
  const Checkpoint& checkpoint = checkpoint_;
  TensorId tensor = checkpoint.tensor_of(chunk);
  Dtype dtype = checkpoint.dtype(tensor);
  Box box{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))};
  auto place = checkpoint.item(chunk);
  if (!place) return not_the_chunk(checkpoint, chunk, "no storage record says where its bytes are");
  if (!lies_inside(box.offsets, box.sizes, checkpoint.shape(tensor)) || size_of(dtype) == 0)
    return not_the_chunk(checkpoint, chunk, "is no box of its tensor");
  files_->read_around(*place);
  SHW_TRY(OpenItem item, open_item(*files_, checkpoint, chunk, ItemPart::kHeader));
  const ItemHeader& header = item.header;
  if (!is_as_recorded(checkpoint, chunk, header))
    return not_the_chunk(checkpoint, chunk, "is not of the size and dtype that are recorded");
  StageClock clock(stages_of(progress), Stage::kReadBack,
                   static_cast<std::uint64_t>(std::max<std::int64_t>(place->length, 0)));
  TileFingerprint elements(checkpoint.shape(tensor), box, size_of(dtype));
  if (!lies_as_it_is(header) || header.conjugate || header.negative) {
    SHW_TRY(Fingerprint sum, fingerprint_in_pieces(checkpoint, chunk, progress));
    SHW_TRY(Hash128 hash, this->hash(*place, progress));
    return ItemPass{hash, sum};
  }
  SHW_TRY(ItemRange range, find_item(*files_, *place));
  PassingItem passing{elements, range.offset, header.payload_offset,
                      header.payload_offset + header.payload_length};
  RangeParts parts;
  parts.bytes = [&](BytesView bytes) { return passing.take(bytes); };
  SHW_CHECK(read_through(*range.source, range.offset, range.length, parts, progress));
  if (!elements.is_complete()) return not_the_chunk(checkpoint, chunk, "has too few elements");
  return ItemPass{passing.hash.value(), elements.value()};
}

}  // namespace shw
