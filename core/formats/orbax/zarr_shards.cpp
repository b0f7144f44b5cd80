#include "core/formats/orbax/zarr_shards.h"

#include <fmt/core.h>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/formats/common/crc32c.h"

namespace shw {
namespace {

constexpr std::uint64_t kPlace = 16, kIndexChecksum = 4;

tl::unexpected<Error> damaged_shard_error(const StoredKey& shard, std::string what) {
  return fail(ErrorKind::kDamaged, std::move(what), {shard.path, shard.offset});
}

Result<Bytes> read_index(const ByteSource& source, const StoredKey& shard, const ZarrArray& array,
                         std::uint64_t pieces) {
  const std::uint64_t tail = array.index_has_checksum ? kIndexChecksum : 0;
  if (pieces > shard.length / kPlace || pieces * kPlace + tail > shard.length)
    return damaged_shard_error(
        shard, fmt::format("a shard of {} bytes is too short for an index of {} chunks",
                           shard.length, pieces));
  const std::uint64_t length = pieces * kPlace + tail;
  const std::uint64_t at = shard.offset + (array.index_at_end ? shard.length - length : 0);
  SHW_TRY(Bytes index, read_bytes(source, at, length));
  if (tail == 0) return index;
  const std::uint32_t expected = load_little<std::uint32_t>(index, index.size() - kIndexChecksum);
  if (crc32c_of(BytesView(index).first(index.size() - kIndexChecksum)) != expected)
    return damaged_shard_error(shard, "the index of a shard does not match its checksum");
  return index;
}

}  // namespace

Result<std::vector<ShardPiece>> shard_pieces(const ByteSource& source, const StoredKey& shard,
                                             const ZarrArray& array, const Extents& offsets) {
  Extents counts;
  for (std::size_t d = 0; d < array.chunk.size(); ++d)
    counts.push_back(array.chunk[d] / array.inner[d]);
  const auto count = checked_volume(counts);
  if (!count) return damaged_shard_error(shard, "a shard has impossibly many chunks");
  SHW_TRY(Bytes index, read_index(source, shard, array, static_cast<std::uint64_t>(*count)));
  std::vector<ShardPiece> pieces;
  Extents at(counts.size(), 0);
  for (std::int64_t i = 0; i < *count; ++i) {
    const std::size_t place = static_cast<std::size_t>(i) * kPlace;
    const auto offset = load_little<std::uint64_t>(index, place),
               length = load_little<std::uint64_t>(index, place + 8);
    const bool is_written = offset != ~std::uint64_t{0} || length != ~std::uint64_t{0};
    if (is_written && (offset > shard.length || length > shard.length - offset))
      return damaged_shard_error(
          shard,
          fmt::format(
              "a chunk of a shard is recorded at byte {} with {} bytes, but the shard has {}",
              offset, length, shard.length));
    ShardPiece piece{offsets, shard.offset + offset, length};
    bool is_inside = true;
    for (std::size_t d = 0; d < at.size(); ++d) {
      piece.offsets[d] += at[d] * array.inner[d];
      is_inside = is_inside && piece.offsets[d] < array.shape[d];
    }
    if (is_written && is_inside) pieces.push_back(std::move(piece));
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < counts[d]) break;
      at[d] = 0;
    }
  }
  return pieces;
}

}  // namespace shw
