#include "core/formats/items/item_check.h"

#include <string>
#include <utility>

#include "core/formats/items/element_pass.h"
#include "core/formats/items/item_access.h"
#include "core/io/read_through.h"
#include "core/tensor/number_form.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxObject = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxItem = std::uint64_t{64} << 30;

// kAbsent if the codec has no checksums.
Result<DataCheck> check_with(const Codec* codec, const ItemRange& range,
                             std::span<const std::string> transforms, std::uint64_t limit,
                             Progress* progress, PayloadObserver* watch) {
  const ItemReader* reader = codec == nullptr ? nullptr : codec->reader;
  if (reader == nullptr || reader->check == nullptr) return DataCheck{};
  return reader->check(range, transforms, limit, progress, watch);
}

// True for compressed items without a separate checksum: successful decoding is the check.
bool is_checked_by_decoding(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  const ItemReader* reader = checkpoint.codec(chunk).reader;
  return header.compressed && reader != nullptr && reader->check == nullptr;
}

std::uint64_t huge_elements(const StatisticsSums& sums) {
  const auto form = float_form(sums.dtype);
  if (!form) return 0;
  const auto first = static_cast<std::size_t>(huge_power(form->bias) - unit_exponent(*form));
  std::uint64_t huge = 0;
  for (const auto& powers : sums.by_power) {
    for (std::size_t power = first; power < powers.size(); ++power) huge += powers[power];
  }
  return huge;
}

FloatCounts counts_in(const StatisticsSums& sums) {
  auto number = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  return {number(sums.elements), number(sums.nan),  number(sums.infinite),
          number(sums.denormal), number(sums.zero), number(huge_elements(sums))};
}

// Statistics of elements that were not visible to the checksum pass.
Result<std::optional<FloatCounts>> count_decoded(ItemCursor& items, ChunkId chunk,
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
  SHW_CHECK(stream_elements(items, chunk, {0, elements.value_or(0)}, parts, progress,
                            constant_run_counter(alike)));
  if (!is_counted) return std::nullopt;
  FloatCounts counts = counter.counts();
  return counts += counts_in(alike);
}

// Statistics from the checksum pass.
std::optional<FloatCounts> counts_of(PayloadObserver& watch, Dtype dtype, ItemNumbers* numbers) {
  if (numbers == nullptr) return watch.counter.counts();
  numbers->sums = watch.numbers->take();
  return can_be_counted(dtype) ? std::optional(counts_in(*numbers->sums)) : std::nullopt;
}

Result<std::optional<FloatCounts>> count_floats(ItemCursor& items, ChunkId chunk,
                                                const ItemHeader& header, const ItemRange& range,
                                                PayloadObserver& watch, ItemNumbers* numbers,
                                                Progress* progress) {
  const Checkpoint& checkpoint = items.checkpoint();
  if (!matches_record(checkpoint, chunk, header) || size_of(header.dtype) == 0) return std::nullopt;
  if (numbers == nullptr && !can_be_counted(header.dtype) &&
      !is_checked_by_decoding(checkpoint, chunk, header))
    return std::nullopt;
  if (watch.seen) return counts_of(watch, header.dtype, numbers);
  if (!is_stored_verbatim(header)) {
    const bool is_asked =
        can_be_counted(header.dtype) || is_checked_by_decoding(checkpoint, chunk, header);
    return is_asked ? count_decoded(items, chunk, header, progress) : std::nullopt;
  }
  watch.counter = FloatCounter(header.dtype);
  if (numbers != nullptr) watch.numbers->begin(header.dtype);
  SHW_CHECK(read_through(*range.source, header.payload_offset, header.payload_length,
                         counting(watch), progress));
  return counts_of(watch, header.dtype, numbers);
}

Result<DataCheck> check_object_item(const Checkpoint& checkpoint, const ItemPlace& place,
                                    const std::vector<std::string>& transforms,
                                    Progress* progress) {
  ItemFiles files(checkpoint);
  SHW_TRY(EntryItem entry, open_entry(files, place, transforms));
  return check_with(checkpoint.format().codec, entry.range, entry.transforms, kMaxObject, progress,
                    nullptr);
}

}  // namespace

Result<DataCheck> check_item_data(ItemCursor& items, ChunkId chunk, Progress* progress,
                                  const ItemHeader* header, ItemNumbers* numbers) {
  const Checkpoint& checkpoint = items.checkpoint();
  std::string_view tensor = checkpoint.fqn(checkpoint.tensor_of(chunk));
  auto check = [&]() -> Result<DataCheck> {
    auto place = checkpoint.item(chunk);
    if (!place) return fail(ErrorKind::kDamaged, "no storage record says where its bytes are");
    items.files().read_with_following_items(*place);
    SHW_TRY(ItemRange range, find_item(items.files(), *place));
    PayloadObserver watch{0, 0, FloatCounter(header == nullptr ? Dtype::kUnknown : header->dtype)};
    bool watches = header != nullptr && is_payload_plain_elements(*header) &&
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
    auto floats = count_floats(items, chunk, *header, range, watch, numbers, progress);
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
  ItemCursor items(checkpoint, /*decoded_bytes=*/0);
  return check_item_data(items, chunk, progress, header, numbers);
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

}  // namespace shw
