#include "core/formats/common/item_template.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/formats/zip/crc32.h"

namespace shw {
namespace {

// Digits of a serialization id: twenty for record names, twenty for CRCs.
constexpr std::size_t kIdDigits = 20;

void write_decimal_digits(std::uint64_t number, std::span<std::byte> to) {
  for (std::size_t i = to.size(); i-- > 0; number /= 10)
    to[i] = static_cast<std::byte>('0' + number % 10);
}

}  // namespace

Result<ItemTemplate> ItemTemplate::of(Dtype dtype, ExtentsView sizes, std::uint64_t length) {
  ItemTemplate items;
  items.dtype_ = dtype;
  items.sizes_ = copy_of(sizes);
  items.payload_length_ = length;
  HoleSkippingSink sink;
  SHW_TRY(items.length_,
          write_torch_item(sink, dtype, sizes, hole_payload(length, 0), &items.marks_));
  const auto hole = static_cast<std::ptrdiff_t>(sink.holes.front());
  // With an empty payload the archive is a single part.
  Bytes all;
  for (const HoleSkippingSink::Part& part : sink.parts)
    all.insert(all.end(), part.bytes.begin(), part.bytes.end());
  items.before_.assign(all.begin(), all.begin() + hole);
  items.bytes_after_.assign(all.begin() + hole, all.end());
  return items;
}

BytesView ItemTemplate::behind(std::uint32_t crc) {
  auto at = [&](std::uint64_t in_item, std::size_t count) {
    return std::span(bytes_after_)
        .subspan(static_cast<std::size_t>(in_item - trailing_begin()), count);
  };
  auto put_crcs = [&](const std::vector<std::uint64_t>& places, std::uint32_t value) {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof value>>(value);
    for (std::uint64_t place : places)
      std::copy(bytes.begin(), bytes.end(), at(place, bytes.size()).begin());
  };
  put_crcs(marks_.crc, crc);
  std::uint64_t mixed = marks_.mixed_before;
  // The id of an archive does not include empty payloads.
  if (payload_length_ != 0) hash_combine_crc(mixed, crc);
  for (std::uint32_t other : marks_.crcs_after) hash_combine_crc(mixed, other);
  write_decimal_digits(mixed, at(marks_.id + kIdDigits, kIdDigits));
  put_crcs(marks_.id_crc, crc32_of(at(marks_.id, 2 * kIdDigits)));
  return bytes_after_;
}

}  // namespace shw
