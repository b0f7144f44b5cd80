#include "core/formats/hdf5/hdf5_fill.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/hdf5/hdf5_cursor.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

Result<OpenItem> open_filled(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             Bytes element) {
  OpenItem item;
  ItemHeader& header = item.header;
  header.dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  header.sizes = copy_of(checkpoint.sizes(chunk));
  header.strides = row_major_strides(header.sizes);
  header.payload_offset = range.offset;
  header.compressed = true;
  auto elements = volume(header.sizes);
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                      std::uint64_t{size_of(header.dtype)})
                        : std::nullopt;
  if (!bytes || element.empty() || element.size() != size_of(header.dtype))
    return fail(ErrorKind::kDamaged, "a fill value is invalid",
                {range.source->name(), range.offset});
  header.payload_length = *bytes;
  item.source = range.source;
  item.alike = element;
  item.stored = [element = std::move(element)](std::uint64_t first,
                                               std::uint64_t last) -> Result<Bytes> {
    Bytes out(static_cast<std::size_t>(last - first));
    const std::size_t width = std::min(out.size(), element.size());
    for (std::size_t i = 0; i < width; ++i)
      out[i] = element[static_cast<std::size_t>((first + i) % element.size())];
    // Each copy doubles the filled length.
    for (std::size_t made = width; made < out.size(); made *= 2)
      std::memcpy(out.data() + made, out.data(), std::min(made, out.size() - made));
    return out;
  };
  return item;
}

Result<OpenItem> open_zeros(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                            ItemPart) {
  Bytes zeros(size_of(checkpoint.dtype(checkpoint.tensor_of(chunk))));
  return open_filled(checkpoint, chunk, std::move(range), std::move(zeros));
}
Result<OpenItem> open_value(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                            ItemPart) {
  SHW_TRY(Bytes value, read_bytes(*range.source, range.offset, range.length));
  return open_filled(checkpoint, chunk, std::move(range), std::move(value));
}

// Fill values are always intact: there is no stored data that could be damaged.
Result<DataCheck> check_filled(const ItemRange&, std::span<const std::string>, std::uint64_t,
                               Progress*, PayloadObserver*) {
  return DataCheck{};
}

constexpr ItemReader kZerosReader{open_zeros, check_filled};
constexpr ItemReader kValueReader{open_value, check_filled};
constexpr Codec kZerosCodec{"hdf5-zeros", &kZerosReader};
constexpr Codec kValueCodec{"hdf5-fill-value", &kValueReader};

}  // namespace

// Layout of the old message: size, value. New message, versions 1 and 2: time of allocation, time
// of filling, whether defined, size, value; version 3: the same as bits, and a size only with a
// value.
std::optional<Hdf5Fill> read_fill(const Hdf5Message& message) {
  constexpr unsigned kNeverFilled = 1;
  Hdf5Cursor cursor(message.body);
  Hdf5Fill fill;
  bool has_value = true;
  if (message.type == kHdf5Fill) {
    const auto version = cursor.take<std::uint8_t>();
    if (version < 1 || version > 3) return std::nullopt;
    unsigned when = 0;
    if (version < 3) {
      cursor.skip(1);
      when = cursor.take<std::uint8_t>();
      fill.is_defined = cursor.take<std::uint8_t>() != 0;
      has_value = version == 1 || fill.is_defined;
    } else {
      const auto flags = cursor.take<std::uint8_t>();
      constexpr unsigned kKnown = 63, kHasValueOfNone = 48;
      if ((flags & ~kKnown) != 0 || (flags & kHasValueOfNone) == kHasValueOfNone)
        return std::nullopt;
      when = flags >> 2 & 3;
      fill.is_defined = (flags & 16) == 0;
      has_value = (flags & 32) != 0;
    }
    fill.is_defined = fill.is_defined && when != kNeverFilled;
  }
  const std::size_t size = has_value ? cursor.take<std::uint32_t>() : 0u;
  fill.offset = message.offset + cursor.at();
  if (!cursor.ok() || size > cursor.left()) return std::nullopt;
  auto value = BytesView(message.body).subspan(cursor.at(), size);
  fill.value.assign(value.begin(), value.end());
  return fill;
}

const Codec& fill_codec(bool is_zero) {
  return is_zero ? kZerosCodec : kValueCodec;
}

std::vector<Box> never_written(const Hdf5Array& array, std::size_t most) {
  auto elements = volume(array.shape);
  const bool is_known =
      array.unread == Hdf5Unsupported::kNothing && array.fill.is_defined &&
      (array.fill.value.empty() || array.fill.value.size() == size_of(array.dtype));
  if (!is_known || !elements || *elements == 0 || array.offset || most == 0) return {};
  if (!array.is_tiled) return {whole(array.shape)};
  // Lists tiles of the grid in order, except the written ones.
  std::set<Extents> written;
  for (const Hdf5Tile& tile : array.tiles) written.insert(tile.offsets);
  std::vector<Box> boxes;
  Box box{Extents(array.shape.size(), 0), array.tile_shape};
  const std::size_t ndim = array.shape.size();
  for (std::size_t seen = 0; seen <= most + written.size(); ++seen) {
    if (!written.contains(box.offsets)) {
      for (std::size_t d = 0; d < ndim; ++d)
        box.sizes[d] = std::min(array.tile_shape[d], array.shape[d] - box.offsets[d]);
      boxes.push_back(box);
      if (boxes.size() > most) return {};
    }
    std::size_t d = ndim;
    while (d > 0 && (box.offsets[d - 1] += array.tile_shape[d - 1]) >= array.shape[d - 1])
      box.offsets[--d] = 0;
    if (d == 0) return boxes;
  }
  return {};
}

}  // namespace shw
