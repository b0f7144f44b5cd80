// Converts a payload to row-major little-endian elements: strides, byte order, and sign
// flags.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/common/item_reader.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Limit: a view that repeats elements more often has an invalid shape.
constexpr std::uint64_t kMaxRepeats = 16;
constexpr std::uint64_t kSmall = 1 << 20;

bool is_floating(Dtype dtype) {
  return is_complex(dtype) || is_plain_float(dtype);
}

// Complex numbers consist of two parts, each with its own byte order and sign.
std::size_t part_size(Dtype dtype) {
  return is_complex(dtype) ? size_of(dtype) / 2 : size_of(dtype);
}

void swap_bytes(std::span<std::byte> bytes, std::size_t part) {
  if (part == 1) return;
  for (std::size_t at = 0; at + part <= bytes.size(); at += part)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + part));
}

// Flips the sign bit (top bit of the last byte) of every `step`-th part, from `first` on.
void flip_signs(std::span<std::byte> bytes, std::size_t part, std::size_t first, std::size_t step) {
  for (std::size_t i = first; (i + 1) * part <= bytes.size(); i += step)
    bytes[(i + 1) * part - 1] ^= std::byte{0x80};
}

// Reads elements [first, last) of the storage, the range that the view uses.
Result<Bytes> read_storage(const OpenItem& item, std::uint64_t first, std::uint64_t last) {
  if (item.storage != nullptr) return read_bytes(*item.storage, first, last - first);
  if (item.stored) return item.stored(first, last);
  return read_bytes(*item.source, item.header.payload_offset + first, last - first);
}

}  // namespace

Result<StorageBytes> storage_bytes(const OpenItem& item) {
  if (item.storage != nullptr) return StorageBytes{item.storage};
  if (!item.stored) return StorageBytes{item.source, item.header.payload_offset};
  SHW_TRY(Bytes all, item.stored(0, item.header.payload_length));
  return StorageBytes{memory_source(item.source->name(), std::move(all))};
}

bool has_flags(const ItemHeader& header) {
  return header.conjugate || header.negative || (header.big_endian && part_size(header.dtype) > 1);
}

Status apply_flags(const OpenItem& item, std::span<std::byte> elements) {
  const ItemHeader& header = item.header;
  std::size_t part = part_size(header.dtype);
  if (header.big_endian) swap_bytes(elements, part);
  if (header.conjugate && is_complex(header.dtype)) flip_signs(elements, part, 1, 2);
  if (!header.negative) return {};
  if (!is_floating(header.dtype))
    return fail(ErrorKind::kUnsupported,
                "is saved as the negative of " + std::string(name(header.dtype)) +
                    ", which torch has for floating point types only",
                {item.source->name(), header.payload_offset});
  flip_signs(elements, part, 0, 1);
  return {};
}

Status check_repeats(const OpenItem& item) {
  return check_repeats(item.header, item.source->name());
}

Status check_repeats(const ItemHeader& header, const std::string& file) {
  auto elements = volume(header.sizes);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                      std::uint64_t{size_of(header.dtype)})
                        : std::nullopt;
  if (bytes && *bytes / kMaxRepeats <= header.payload_length + kSmall) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("expands {} bytes of storage to {} of {}", header.payload_length,
                          to_text(header.sizes), name(header.dtype)),
              {file, header.payload_offset});
}

Result<Bytes> read_elements(const OpenItem& item) {
  const ItemHeader& header = item.header;
  const std::uint64_t size = size_of(header.dtype);
  auto needed = storage_needed(header.sizes, header.strides, header.storage_offset);
  auto elements = volume(header.sizes);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements), size) : std::nullopt;
  if (!needed || !bytes || size == 0)
    return fail(ErrorKind::kDamaged, "has impossible sizes or strides",
                {item.source->name(), header.payload_offset});
  if (*elements == 0) return Bytes{};
  SHW_CHECK(check_repeats(item));
  auto first = static_cast<std::uint64_t>(header.storage_offset);
  SHW_TRY(Bytes storage,
          read_storage(item, first * size, static_cast<std::uint64_t>(*needed) * size));
  if (!is_row_major(header.sizes, header.strides)) {
    Bytes out(*bytes);
    Extents dense = row_major_strides(header.sizes);
    copy_strided({storage, header.strides, 0}, {out, dense, 0}, header.sizes, size);
    storage = std::move(out);
  }
  SHW_CHECK(apply_flags(item, storage));
  return storage;
}

}  // namespace shw
