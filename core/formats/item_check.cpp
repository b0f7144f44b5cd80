// Reads items completely: CRCs, which torch never verifies, and fingerprints of file
// ranges.
#include <array>

#include "core/base/hash.h"
#include "core/base/little_endian.h"
#include "core/formats/common/magic.h"
#include "core/formats/element_pass.h"
#include "core/formats/hash_ranges.h"
#include "core/formats/inlined_check.h"
#include "core/formats/item_access.h"
#include "core/formats/item_checks.h"
#include "core/formats/items.h"
#include "core/io/read_through.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxObject = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxItem = std::uint64_t{64} << 30;

// kAbsent if the codec has no checksums.
Result<DataCheck> check_with(const Codec* codec, const ItemRange& range,
                             std::span<const std::string> transforms, std::uint64_t limit,
                             Progress* progress, PayloadWatch* watch) {
  const ItemReader* reader = codec == nullptr ? nullptr : codec->reader;
  if (reader == nullptr || reader->check == nullptr) return DataCheck{};
  return reader->check(range, transforms, limit, progress, watch);
}

// True for compressed items without a separate checksum: successful decoding is the check.
bool is_checked_by_decoding(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  const ItemReader* reader = checkpoint.codec(chunk).reader;
  return header.compressed && reader != nullptr && reader->check == nullptr;
}

FloatCounts counts_in(const StatisticsSums& sums) {
  auto number = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  return {number(sums.elements), number(sums.nan), number(sums.infinite), number(sums.denormal),
          number(sums.zero)};
}

// Statistics of elements that were not visible to the checksum pass.
Result<std::optional<FloatCounts>> count_decoded(const Checkpoint& checkpoint, ChunkId chunk,
                                                 const ItemHeader& header, Progress* progress) {
  const auto elements = volume(header.sizes);
  const bool is_counted = can_be_counted(header.dtype);
  FloatCounter counter(header.dtype);
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    if (is_counted) counter.add(bytes);
    return {};
  };
  StatisticsSums alike(header.dtype);
  SHW_CHECK(ElementPasses(checkpoint)
                .pass(chunk, {0, elements.value_or(0)}, parts, progress, counting_alike(alike)));
  if (!is_counted) return std::nullopt;
  FloatCounts counts = counter.counts();
  return counts += counts_in(alike);
}

// Statistics from the checksum pass.
std::optional<FloatCounts> counts_of(PayloadWatch& watch, Dtype dtype, ItemNumbers* numbers) {
  if (numbers == nullptr) return watch.counter.counts();
  numbers->sums = watch.numbers->take();
  return can_be_counted(dtype) ? std::optional(counts_in(*numbers->sums)) : std::nullopt;
}

Result<std::optional<FloatCounts>> count_floats(const Checkpoint& checkpoint, ChunkId chunk,
                                                const ItemHeader& header, const ItemRange& range,
                                                PayloadWatch& watch, ItemNumbers* numbers,
                                                Progress* progress) {
  if (!is_as_recorded(checkpoint, chunk, header) || size_of(header.dtype) == 0) return std::nullopt;
  if (numbers == nullptr && !can_be_counted(header.dtype) &&
      !is_checked_by_decoding(checkpoint, chunk, header))
    return std::nullopt;
  if (watch.seen) return counts_of(watch, header.dtype, numbers);
  if (!lies_as_it_is(header)) {
    const bool is_asked =
        can_be_counted(header.dtype) || is_checked_by_decoding(checkpoint, chunk, header);
    return is_asked ? count_decoded(checkpoint, chunk, header, progress) : std::nullopt;
  }
  watch.counter = FloatCounter(header.dtype);
  if (numbers != nullptr) watch.numbers->begin(header.dtype);
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    watch.add(bytes);
    return {};
  };
  parts.hole = [&](std::uint64_t length) -> Status {
    watch.add_zeros(length);
    return {};
  };
  SHW_CHECK(
      read_through(*range.source, header.payload_offset, header.payload_length, parts, progress));
  return counts_of(watch, header.dtype, numbers);
}

Result<DataCheck> check_object_item(const Checkpoint& checkpoint, const ItemPlace& place,
                                    std::vector<std::string> transforms, Progress* progress) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  std::array<std::byte, 4> magic{};
  if (range.length >= magic.size()) SHW_CHECK(range.source->read(range.offset, magic));
  // Without recorded transforms a compressed entry is recognised by its first bytes.
  if (transforms.empty() && load_little<std::uint32_t>(magic) == kZstdMagic)
    transforms.emplace_back("stream.zstd/1");
  return check_with(checkpoint.format().codec, range, transforms, kMaxObject, progress, nullptr);
}

}  // namespace

bool is_as_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  return header.dtype == checkpoint.dtype(checkpoint.tensor_of(chunk)) &&
         same(header.sizes, checkpoint.sizes(chunk));
}

bool lies_as_it_is(const ItemHeader& header) {
  return !header.compressed && passes_as_it_is(header);
}

bool passes_as_it_is(const ItemHeader& header) {
  auto elements = volume(header.sizes);
  return elements && size_of(header.dtype) != 0 && !header.big_endian &&
         header.storage_offset == 0 && is_row_major(header.sizes, header.strides) &&
         header.payload_length / size_of(header.dtype) == static_cast<std::uint64_t>(*elements) &&
         header.payload_length % size_of(header.dtype) == 0;
}

ItemChecks::ItemChecks(const Checkpoint& checkpoint)
    : checkpoint_(checkpoint), files_(std::make_unique<ItemFiles>(checkpoint)) {}
ItemChecks::~ItemChecks() = default;

Result<DataCheck> ItemChecks::check(ChunkId chunk, Progress* progress, const ItemHeader* header,
                                    ItemNumbers* numbers) {
  const Checkpoint& checkpoint = checkpoint_;
  std::string_view tensor = checkpoint.fqn(checkpoint.tensor_of(chunk));
  auto check = [&]() -> Result<DataCheck> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    files_->read_around(*place);
    SHW_TRY(ItemRange range, find_item(*files_, *place));
    PayloadWatch watch{0, 0, FloatCounter(header == nullptr ? Dtype::kUnknown : header->dtype)};
    bool watches = header != nullptr && passes_as_it_is(*header) &&
                   (numbers != nullptr || can_be_counted(header->dtype));
    if (watches) {
      watch.offset = header->payload_offset;
      watch.length = header->payload_length;
    }
    if (watches && numbers != nullptr) {
      numbers->counter.begin(header->dtype);
      watch.numbers = &numbers->counter;
    }
    SHW_TRY(DataCheck done,
            check_with(&checkpoint.codec(chunk), range, checkpoint.transforms(chunk), kMaxItem,
                       progress, watches ? &watch : nullptr));
    if (header == nullptr) return done;
    auto floats = count_floats(checkpoint, chunk, *header, range, watch, numbers, progress);
    if (floats) done.floats = *floats;
    // A checksum mismatch is more important than missing statistics.
    if (!floats && done.crc != DataCheck::Crc::kDiffers)
      return tl::unexpected<Error>(std::move(floats).error());
    return done;
  }();
  if (check) return check;
  return tl::unexpected<Error>(naming(std::move(check).error(), tensor));
}

Result<DataCheck> check_item_data(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress,
                                  const ItemHeader* header, ItemNumbers* numbers) {
  return ItemChecks(checkpoint).check(chunk, progress, header, numbers);
}

Result<DataCheck> check_object_data(const Checkpoint& checkpoint, std::size_t object,
                                    Progress* progress) {
  const NonTensorEntry& row = checkpoint.objects()[object];
  auto check = [&]() -> Result<DataCheck> {
    // The pickle that contains an inlined value was verified on opening.
    if (row.inlined) return DataCheck{};
    if (!row.item) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    SHW_TRY(DataCheck first, check_object_item(checkpoint, *row.item, row.transforms, progress));
    if (first.crc == DataCheck::Crc::kDiffers) return first;
    for (const ItemPlace& place : row.of_other_ranks) {
      SHW_TRY(DataCheck other, check_object_item(checkpoint, place, {}, progress));
      if (other.crc == DataCheck::Crc::kDiffers)
        return fail(ErrorKind::kDamaged,
                    "the record " + other.record + " differs from its checksum",
                    {checkpoint.file(place.file).path, other.record_offset});
    }
    return first;
  }();
  if (check) return check;
  return tl::unexpected<Error>(naming(std::move(check).error(), row.fqn));
}

Status check_inlined_data(const Checkpoint& checkpoint, std::vector<Result<DataCheck>>& objects,
                          Progress* progress) {
  const Codec* codec = checkpoint.format().codec;
  bool asks = codec != nullptr && codec->reader != nullptr && codec->reader->check_inlined;
  return asks ? codec->reader->check_inlined(checkpoint, objects, progress) : Status{};
}

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

Result<std::string> hash_item(const Checkpoint& checkpoint, ItemPlace place, Progress* progress) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  ByteRange bytes{range.offset, range.length};
  return hash_ranges(*range.source, std::span(&bytes, 1), progress);
}

}  // namespace shw
