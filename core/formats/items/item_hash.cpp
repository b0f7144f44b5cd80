#include "core/formats/items/item_hash.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/formats/common/item_reader.h"
#include "core/formats/common/magic.h"
#include "core/formats/items/element_pass.h"
#include "core/formats/items/hash_ranges.h"
#include "core/formats/items/item_access.h"
#include "core/formats/zip/crc32.h"
#include "core/io/read_through.h"
#include "core/tensor/tile_fingerprint.h"

namespace shw {
namespace {

tl::unexpected<Error> chunk_mismatch_error(const Checkpoint& checkpoint, ChunkId chunk,
                                           const std::string& why) {
  auto item = checkpoint.item(chunk);
  return fail(ErrorKind::kDamaged, why,
              {item ? checkpoint.file(item->file).path : std::string(), std::nullopt,
               std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)))});
}

// The part of `bytes`, which begin at byte `at`, that is in [begin, end).
BytesView part_in(BytesView bytes, std::uint64_t at, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t low = std::max(at, begin), high = std::min(at + bytes.size(), end);
  if (low >= high) return {};
  return bytes.subspan(static_cast<std::size_t>(low - at), static_cast<std::size_t>(high - low));
}

// Hashes all stored bytes of an item. `also`, which may be null, receives them with their position
// in the source.
using BytesSink = std::function<void(std::uint64_t at, BytesView bytes)>;
Result<Hash128> hash_range(const ItemRange& range, const BytesSink& also, Progress* progress) {
  RunningHash hash;
  std::uint64_t at = range.offset;
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    hash.add(bytes);
    if (also) also(at, bytes);
    at += bytes.size();
    return {};
  };
  SHW_CHECK(read_through(*range.source, range.offset, range.length, parts, progress));
  return hash.value();
}

constexpr const char* kNoPlace = "no storage record says where its bytes are";
constexpr std::uint64_t kMaxDecoded = std::uint64_t{64} << 30;

std::string record_mismatch_text(const ByteSource& file, const std::string& record,
                                 std::uint64_t at) {
  return fmt::format("in {} the bytes of the record {} (at byte {}) do not match their checksum",
                     file.name(), record, at);
}

// Computes the checksums of runs while all bytes of an item pass.
class RunChecksums {
 public:
  explicit RunChecksums(std::vector<ChecksummedRun> runs) : runs_(std::move(runs)) {
    std::sort(runs_.begin(), runs_.end(), [](const ChecksummedRun& a, const ChecksummedRun& b) {
      return std::pair(a.offset, a.length) < std::pair(b.offset, b.length);
    });
  }

  void take(std::uint64_t at, BytesView bytes) {
    while (run_ < runs_.size()) {
      const ChecksummedRun& run = runs_[run_];
      const std::uint64_t end = run.offset + run.length;
      const BytesView part = part_in(bytes, at, run.offset, end);
      if (!part.empty()) crc_ = crc32_of(part, crc_);
      if (at + bytes.size() < end) return;
      if (crc_ != run.crc && first_mismatched_run_ == nullptr) first_mismatched_run_ = &run;
      crc_ = 0;
      ++run_;
    }
  }
  // The first run with a mismatch.
  const ChecksummedRun* first_mismatched_run() const { return first_mismatched_run_; }

 private:
  std::vector<ChecksummedRun> runs_;
  std::size_t run_ = 0;
  std::uint32_t crc_ = 0;
  const ChecksummedRun* first_mismatched_run_ = nullptr;
};

// Why an item cannot be intact; an error if that was not examined; empty if the item is not
// supported at all.
Result<std::string> mismatch_reason(Error error) {
  if (error.kind == ErrorKind::kUnsupported) return std::string();
  if (error.kind != ErrorKind::kDamaged) return tl::unexpected<Error>(std::move(error));
  return fmt::format("in {} (at byte {}): {}", error.place.file, error.place.offset.value_or(0),
                     error.message);
}

// Verifies items that must be decoded, in a separate pass.
Result<std::string> mismatch_in_decoded(const ItemReader& reader, const ItemRange& range,
                                        std::span<const std::string> transforms,
                                        Progress* progress) {
  auto check = reader.check(range, transforms, kMaxDecoded, progress, nullptr);
  if (!check) return mismatch_reason(std::move(check).error());
  if (check->crc != DataCheck::Crc::kDiffers) return std::string();
  return record_mismatch_text(*range.source, check->record, check->record_offset);
}

// The bytes may be valid and belong to another chunk.
Result<std::string> find_header_mismatch(ItemCursor& items, ChunkId chunk, const ItemPlace& place) {
  const Checkpoint& checkpoint = items.checkpoint();
  const Dtype dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  auto item = open_item(items.files(), checkpoint, chunk, ItemPart::kHeader);
  if (!item) return mismatch_reason(std::move(item).error());
  if (dtype == Dtype::kUnknown || matches_record(checkpoint, chunk, item->header))
    return std::string();
  return fmt::format(
      "in {} (at byte {}): the item is a tensor {} of {} and not the chunk, {} of {}",
      checkpoint.file(place.file).path, place.offset, to_text(item->header.sizes),
      name(item->header.dtype), to_text(checkpoint.sizes(chunk)), name(dtype));
}

// `reader`: null if the item has no checksums.
Result<VerifiedItem> verify_item(ItemCursor& items, const ItemPlace& place,
                                 const ItemReader* reader, std::span<const std::string> transforms,
                                 Progress* progress) {
  if (reader == nullptr || reader->check == nullptr) {
    SHW_TRY(Hash128 hash, hash_item(items, place, progress));
    return VerifiedItem{hash};
  }
  items.files().read_with_following_items(place);
  SHW_TRY(ItemRange range, find_item(items.files(), place));
  using Runs = std::optional<std::vector<ChecksummedRun>>;
  const bool lies_plain = transforms.empty() && reader->sums != nullptr;
  auto runs = lies_plain ? reader->sums(range) : Result<Runs>(Runs());
  VerifiedItem verified;
  if (!runs) {
    SHW_TRY(verified.mismatch, mismatch_reason(std::move(runs).error()));
    runs = Runs(std::in_place);
  }
  const bool is_decoded = !runs->has_value();
  RunChecksums passing(is_decoded ? std::vector<ChecksummedRun>() : std::move(**runs));
  auto take = [&](std::uint64_t at, BytesView bytes) { passing.take(at, bytes); };
  SHW_TRY(verified.hash, hash_range(range, take, progress));
  if (const ChecksummedRun* bent = passing.first_mismatched_run())
    verified.mismatch = record_mismatch_text(*range.source, bent->record, bent->offset);
  if (is_decoded) {
    SHW_TRY(verified.mismatch, mismatch_in_decoded(*reader, range, transforms, progress));
  }
  return verified;
}

// Fingerprint of a chunk's elements by index in the whole tensor, computed in pieces for any layout
// and codec.
Result<Fingerprint> fingerprint_in_pieces(const Checkpoint& checkpoint, ChunkId chunk,
                                          const Progress* progress) {
  const TensorId tensor = checkpoint.tensor_of(chunk);
  const ExtentsView tile = checkpoint.offsets(chunk);
  const Extents strides = row_major_strides(checkpoint.shape(tensor));
  Fingerprint sum;
  auto take = [&](const Box& box, BytesView elements) -> Status {
    std::int64_t first = 0;
    for (std::size_t d = 0; d < tile.size(); ++d) first += (tile[d] + box.offsets[d]) * strides[d];
    add_box(sum, box.sizes, elements, size_of(checkpoint.dtype(tensor)), strides, first);
    return {};
  };
  ItemCursor items(checkpoint, /*decoded_bytes=*/0);  // releases its decoder after this item
  SHW_CHECK(stream_boxes(items, chunk, whole(checkpoint.sizes(chunk)), take, progress));
  return sum;
}

}  // namespace

Result<Hash128> hash_of_ranges(const ByteSource& source, std::span<const ByteRange> ranges,
                               Progress* progress) {
  RunningHash hash;
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    hash.add(bytes);
    return {};
  };
  for (const ByteRange& range : ranges)
    SHW_CHECK(read_through(source, range.offset, range.length, parts, progress));
  return hash.value();
}

Result<std::string> hash_ranges(const ByteSource& source, std::span<const ByteRange> ranges,
                                Progress* progress) {
  SHW_TRY(Hash128 hash, hash_of_ranges(source, ranges, progress));
  return to_hex(hash);
}

Result<Hash128> hash_item(ItemCursor& items, const ItemPlace& place, Progress* progress) {
  items.files().read_with_following_items(place);
  SHW_TRY(ItemRange range, find_item(items.files(), place));
  return hash_range(range, nullptr, progress);
}

Result<std::string> hash_item(const Checkpoint& checkpoint, const ItemPlace& place,
                              Progress* progress) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  SHW_TRY(Hash128 hash, hash_range(range, nullptr, progress));
  return to_hex(hash);
}

Result<VerifiedItem> hash_and_verify(ItemCursor& items, ChunkId chunk, Progress* progress) {
  const Checkpoint& checkpoint = items.checkpoint();
  auto place = checkpoint.item(chunk);
  if (!place) return chunk_mismatch_error(checkpoint, chunk, kNoPlace);
  SHW_TRY(VerifiedItem verified, verify_item(items, *place, checkpoint.codec(chunk).reader,
                                             checkpoint.transforms(chunk), progress));
  if (verified.mismatch.empty()) {
    SHW_TRY(verified.mismatch, find_header_mismatch(items, chunk, *place));
  }
  return verified;
}

Result<VerifiedItem> hash_and_verify(ItemCursor& items, const NonTensorEntry& object,
                                     Progress* progress) {
  if (!object.item)
    return fail(ErrorKind::kDamaged, kNoPlace, Place{.file = {}, .tensor = object.fqn});
  const Codec* codec = items.checkpoint().format().codec;
  SHW_TRY(EntryItem entry, open_entry(items.files(), *object.item, object.transforms));
  // Non-archives have no checksums.
  const bool has_sums = codec != nullptr && (!entry.transforms.empty() || entry.magic == kZipMagic);
  return verify_item(items, *object.item, has_sums ? codec->reader : nullptr, entry.transforms,
                     progress);
}

Result<HashedElements> hash_and_fingerprint(ItemCursor& items, ChunkId chunk, Progress* progress) {
  const Checkpoint& checkpoint = items.checkpoint();
  TensorId tensor = checkpoint.tensor_of(chunk);
  Dtype dtype = checkpoint.dtype(tensor);
  Box box = box_of(checkpoint, chunk);
  auto place = checkpoint.item(chunk);
  if (!place) return chunk_mismatch_error(checkpoint, chunk, kNoPlace);
  if (!is_inside(box.offsets, box.sizes, checkpoint.shape(tensor)) || size_of(dtype) == 0)
    return chunk_mismatch_error(checkpoint, chunk, "is not a box of its tensor");
  items.files().read_with_following_items(*place);
  SHW_TRY(OpenItem item, open_item(items.files(), checkpoint, chunk, ItemPart::kHeader));
  const ItemHeader& header = item.header;
  if (!matches_record(checkpoint, chunk, header))
    return chunk_mismatch_error(checkpoint, chunk,
                                "has a size or dtype that differs from the metadata");
  StageClock clock(stages_of(progress), Stage::kReadBack,
                   static_cast<std::uint64_t>(std::max<std::int64_t>(place->length, 0)));
  if (!is_stored_verbatim(header) || header.conjugate || header.negative) {
    SHW_TRY(Fingerprint sum, fingerprint_in_pieces(checkpoint, chunk, progress));
    SHW_TRY(Hash128 hash, hash_item(items, *place, progress));
    return HashedElements{hash, sum};
  }
  SHW_TRY(ItemRange range, find_item(items.files(), *place));
  TileFingerprint elements(checkpoint.shape(tensor), box, size_of(dtype));
  auto take = [&](std::uint64_t at, BytesView bytes) {
    elements.add(
        part_in(bytes, at, header.payload_offset, header.payload_offset + header.payload_length));
  };
  SHW_TRY(Hash128 hash, hash_range(range, take, progress));
  if (!elements.is_complete())
    return chunk_mismatch_error(checkpoint, chunk, "has too few elements");
  return HashedElements{hash, elements.value()};
}

}  // namespace shw
