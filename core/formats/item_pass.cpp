#include "core/formats/item_pass.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/hash.h"
#include "core/base/little_endian.h"
#include "core/formats/common/crc32.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/common/magic.h"
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

// Consumer of an item's bytes: all go into the hash, the payload also into the
// fingerprint.
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

constexpr std::uint64_t kMostDecoded = std::uint64_t{64} << 30;

std::string differs(const ByteSource& file, const std::string& record, std::uint64_t at) {
  return fmt::format("in {} the bytes of the record {} (at byte {}) do not match their checksum",
                     file.name(), record, at);
}

// Computes the checksums of runs while all bytes of an item pass.
class PassingRuns {
 public:
  explicit PassingRuns(std::vector<SummedRun> runs) : runs_(std::move(runs)) {
    std::sort(runs_.begin(), runs_.end(), [](const SummedRun& a, const SummedRun& b) {
      return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
    });
  }

  void take(std::uint64_t at, BytesView bytes) {
    const std::uint64_t next = at + bytes.size();
    while (run_ < runs_.size()) {
      const SummedRun& run = runs_[run_];
      const std::uint64_t end = run.offset + run.length, low = std::max(at, run.offset),
                          high = std::min(next, end);
      if (low < high)
        crc_ = crc32_of(
            bytes.subspan(static_cast<std::size_t>(low - at), static_cast<std::size_t>(high - low)),
            crc_);
      if (next < end) return;
      if (crc_ != run.crc && bent_ == nullptr) bent_ = &run;
      crc_ = 0;
      ++run_;
    }
  }
  // The first run with a mismatch.
  const SummedRun* bent() const { return bent_; }

 private:
  std::vector<SummedRun> runs_;
  std::size_t run_ = 0;
  std::uint32_t crc_ = 0;
  const SummedRun* bent_ = nullptr;
};

// Why an item cannot be intact; an error if that was not examined; empty if the item is not
// supported at all.
Result<std::string> mismatch_in(Error error) {
  if (error.kind == ErrorKind::kUnsupported) return std::string();
  if (error.kind != ErrorKind::kDamaged) return tl::unexpected<Error>(std::move(error));
  return fmt::format("in {} (at byte {}): {}", error.place.file, error.place.offset.value_or(0),
                     error.message);
}

// Verifies items that must be decoded, in a separate pass.
Result<std::string> mismatch_in_decoded(const ItemReader& reader, const ItemRange& range,
                                        std::span<const std::string> transforms,
                                        Progress* progress) {
  auto check = reader.check(range, transforms, kMostDecoded, progress, nullptr);
  if (!check) return mismatch_in(std::move(check).error());
  if (check->crc != DataCheck::Crc::kDiffers) return std::string();
  return differs(*range.source, check->record, check->record_offset);
}

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

ItemHasher::ItemHasher(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(std::make_unique<ItemFiles>(checkpoint)) {}
ItemHasher::~ItemHasher() = default;

Result<Hash128> ItemHasher::hash(const ItemPlace& place, Progress* progress) {
  files_->read_around(place);
  SHW_TRY(ItemRange range, find_item(*files_, place));
  const ByteRange bytes{range.offset, range.length};
  return hash_of_ranges(*range.source, std::span(&bytes, 1), progress);
}

Result<VerifiedItem> ItemHasher::hold(ChunkId chunk, Progress* progress) {
  auto place = checkpoint_.item(chunk);
  if (!place)
    return not_the_chunk(checkpoint_, chunk, "no storage record says where its bytes are");
  SHW_TRY(VerifiedItem held,
          hold(*place, checkpoint_.codec(chunk).reader, checkpoint_.transforms(chunk), progress));
  if (held.mismatch.empty()) {
    SHW_TRY(held.mismatch, mismatch_in_header(chunk, *place));
  }
  return held;
}

// The bytes may be valid and belong to another chunk.
Result<std::string> ItemHasher::mismatch_in_header(ChunkId chunk, const ItemPlace& place) {
  const Dtype dtype = checkpoint_.dtype(checkpoint_.tensor_of(chunk));
  auto item = open_item(*files_, checkpoint_, chunk, ItemPart::kHeader);
  if (!item) return mismatch_in(std::move(item).error());
  if (dtype == Dtype::kUnknown || is_as_recorded(checkpoint_, chunk, item->header))
    return std::string();
  return fmt::format("in {} (at byte {}): the item is a tensor {} of {} and not the tile, {} of {}",
                     checkpoint_.file(place.file).path, place.offset, to_text(item->header.sizes),
                     name(item->header.dtype), to_text(checkpoint_.sizes(chunk)), name(dtype));
}

Result<VerifiedItem> ItemHasher::hold(const NonTensorEntry& object, Progress* progress) {
  if (!object.item)
    return fail(ErrorKind::kDamaged, "no storage record says where its bytes are",
                Place{.file = {}, .tensor = object.fqn});
  const Codec* codec = checkpoint_.format().codec;
  SHW_TRY(ItemRange range, find_item(*files_, *object.item));
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  const auto begin = load_little<std::uint32_t>(magic);
  std::vector<std::string> transforms = object.transforms;
  // Recognition without recorded transforms. Non-archives have no checksums.
  if (transforms.empty() && begin == kZstdMagic) transforms.emplace_back("stream.zstd/1");
  const bool has_sums = codec != nullptr && (!transforms.empty() || begin == kZipMagic);
  return hold(*object.item, has_sums ? codec->reader : nullptr, transforms, progress);
}

Result<VerifiedItem> ItemHasher::hold(const ItemPlace& place, const ItemReader* reader,
                                      std::span<const std::string> transforms, Progress* progress) {
  if (reader == nullptr || reader->check == nullptr) {
    SHW_TRY(Hash128 hash, this->hash(place, progress));
    return VerifiedItem{hash};
  }
  files_->read_around(place);
  SHW_TRY(ItemRange range, find_item(*files_, place));
  using Runs = std::optional<std::vector<SummedRun>>;
  const bool lies_plain = transforms.empty() && reader->sums != nullptr;
  auto runs = lies_plain ? reader->sums(range) : Result<Runs>(Runs());
  VerifiedItem held;
  if (!runs) {
    SHW_TRY(held.mismatch, mismatch_in(std::move(runs).error()));
    runs = Runs(std::in_place);
  }
  const bool is_decoded = !runs->has_value();
  PassingRuns passing(is_decoded ? std::vector<SummedRun>() : std::move(**runs));
  RunningHash hash;
  std::uint64_t at = range.offset;
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    hash.add(bytes);
    passing.take(at, bytes);
    at += bytes.size();
    return {};
  };
  SHW_CHECK(read_through(*range.source, range.offset, range.length, parts, progress));
  held.hash = hash.value();
  if (const SummedRun* bent = passing.bent())
    held.mismatch = differs(*range.source, bent->record, bent->offset);
  if (is_decoded) {
    SHW_TRY(held.mismatch, mismatch_in_decoded(*reader, range, transforms, progress));
  }
  return held;
}

Result<ItemPass> ItemHasher::hash_and_fingerprint(ChunkId chunk, Progress* progress) {
  const Checkpoint& checkpoint = checkpoint_;
  TensorId tensor = checkpoint.tensor_of(chunk);
  Dtype dtype = checkpoint.dtype(tensor);
  Box box = box_of(checkpoint, chunk);
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
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) { return passing.take(bytes); };
  SHW_CHECK(read_through(*range.source, range.offset, range.length, parts, progress));
  if (!elements.is_complete()) return not_the_chunk(checkpoint, chunk, "has too few elements");
  return ItemPass{passing.hash.value(), elements.value()};
}

}  // namespace shw
