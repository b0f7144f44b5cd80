#include "core/formats/hdf5/hdf5_deflated.h"

#include <fmt/core.h>
#include <libdeflate.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/chunk_header.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/hdf5/hdf5_tile_stream.h"
#include "core/formats/zip/byte_stream.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Maximal compression ratio of deflate.
constexpr std::uint64_t kDeflateGrowth = 1032;
// Tiles up to this size, compressed and decompressed, are inflated at once by libdeflate, three
// times as fast as the zlib stream that larger ones need. h5py chooses at most 1 MiB per tile.
constexpr std::uint64_t kInflatedWhole = std::uint64_t{8} << 20;
// Including elements beyond the dataset's end.
constexpr std::uint64_t kMaxInflated = 4 * kInflatedWhole;

// Inflates a tile. Tiles at a dataset's end contain more elements than their view; only the stream
// tells how many. Empty if more than kMaxInflated.
Result<std::optional<Bytes>> inflate(const ItemRange& range, std::uint64_t at_least) {
  SHW_TRY(Bytes stored, read_bytes(*range.source, range.offset, range.length));
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  const std::uint64_t most = checked_mul(range.length, kDeflateGrowth).value_or(~std::uint64_t{0});
  for (std::uint64_t room = std::max<std::uint64_t>(at_least, 64); room / 2 <= most; room *= 2) {
    if (at_least > most) break;
    if (room > kMaxInflated) return std::nullopt;
    Bytes out(static_cast<std::size_t>(room));
    std::size_t made = 0;
    auto result = libdeflate_zlib_decompress(inflater.get(), stored.data(), stored.size(),
                                             out.data(), out.size(), &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) continue;
    if (result != LIBDEFLATE_SUCCESS || made < at_least) break;
    out.resize(made);
    return std::optional(std::move(out));
  }
  return fail(ErrorKind::kDamaged,
              fmt::format("a compressed chunk does not expand to {} bytes", at_least),
              {range.source->name(), range.offset});
}

// Reverses shuffling: first bytes of all elements, then second ones, ...; the rest is unchanged.
Bytes reverse_hdf5_shuffle(const Bytes& bytes, std::size_t element) {
  const std::size_t count = bytes.size() / element;
  Bytes out = bytes;
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < count; ++i) out[i * element + b] = bytes[b * count + i];
  }
  return out;
}

// A shuffled byte's element depends on the number of elements, so a stream of wrong length would
// silently give wrong numbers. `rows`: of the tile including those beyond the dataset's end; if
// unknown, whole rows that cover the view.
bool has_inflated_tile_size(const ItemHeader& header, std::uint64_t made,
                            std::optional<std::uint64_t> rows) {
  const auto element = static_cast<std::uint64_t>(size_of(header.dtype));
  if (header.sizes.empty()) return made == element;
  const std::uint64_t row = static_cast<std::uint64_t>(header.strides[0]) * element;
  if (row == 0 || made % row != 0) return row == 0;
  return rows ? made / row == *rows : made / row > static_cast<std::uint64_t>(header.sizes[0]);
}

// The tile's number of rows, if it does not extend beyond the dataset's end.
std::optional<std::uint64_t> row_count_of_full_tile(const Checkpoint& checkpoint, ChunkId chunk,
                                                    bool overhangs) {
  if (!overhangs) {
    ExtentsView sizes = checkpoint.sizes(chunk);
    return sizes.empty() ? 1 : static_cast<std::uint64_t>(sizes[0]);
  }
  for (std::string_view word : checkpoint.transforms(chunk)) {
    if (!word.starts_with(kTileRows)) continue;
    word.remove_prefix(kTileRows.size());
    return consume_number(word);
  }
  return std::nullopt;
}

enum class Shuffle : std::uint8_t { kNot, kWhole, kOverhangs };

ItemHeader header_of(const Checkpoint& checkpoint, ChunkId chunk, const ItemRange& range) {
  ItemHeader header = chunk_header(checkpoint, chunk, range);
  header.compressed = true;
  return header;
}

// Inflates while reading.
std::shared_ptr<const ByteSource> inflating_tile_source(const ItemRange& range,
                                                        const ItemHeader& header, bool is_shuffled,
                                                        std::optional<std::uint64_t> rows) {
  DeflatedTile tile{range.source, range.offset, range.length, header.payload_length};
  if (is_shuffled) tile.shuffled_by = size_of(header.dtype);
  const std::uint64_t row =
      header.sizes.empty() ? 1 : static_cast<std::uint64_t>(header.strides[0]);
  if (rows) tile.whole = checked_mul(*rows, row * size_of(header.dtype));
  tile.may_have = [header](std::uint64_t made) {
    return has_inflated_tile_size(header, made, std::nullopt);
  };
  return streamed_source(range.source->name(), header.payload_length,
                         [tile] { return tile_stream(tile); });
}

Result<OpenItem> open_tile(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                           Shuffle shuffle) {
  OpenItem item;
  ItemHeader& header = item.header;
  header = header_of(checkpoint, chunk, range);
  const std::uint64_t element = size_of(header.dtype);
  auto needed = storage_needed(header.sizes, header.strides, 0);
  auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed), element) : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::kDamaged, "has impossible sizes or strides",
                {range.source->name(), range.offset});
  header.payload_length = *bytes;
  item.source = range.source;
  const bool is_shuffled = shuffle != Shuffle::kNot && element > 1;
  const auto rows = row_count_of_full_tile(checkpoint, chunk, shuffle == Shuffle::kOverhangs);
  if (std::max(*bytes, range.length) > kInflatedWhole) {
    item.storage = inflating_tile_source(range, header, is_shuffled, rows);
    return item;
  }
  item.stored = [range, is_shuffled, header, element, rows](std::uint64_t first,
                                                            std::uint64_t last) -> Result<Bytes> {
    SHW_TRY(auto made, inflate(range, std::max(header.payload_length, last)));
    if (!made)
      return read_bytes(*inflating_tile_source(range, header, is_shuffled, rows), first,
                        last - first);
    Bytes all = std::move(*made);
    if (is_shuffled) {
      if (!has_inflated_tile_size(header, all.size(), rows))
        return fail(ErrorKind::kDamaged,
                    fmt::format("a shuffled chunk has {} bytes, which is not its size", all.size()),
                    {range.source->name(), range.offset});
      all = reverse_hdf5_shuffle(all, element);
    }
    return Bytes(all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(last));
  };
  return item;
}

template <Shuffle shuffle>
Result<OpenItem> open_as(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range, ItemPart) {
  return open_tile(checkpoint, chunk, std::move(range), shuffle);
}

constexpr ItemReader kDeflatedReader{open_as<Shuffle::kNot>, nullptr};
constexpr ItemReader kShuffledReader{open_as<Shuffle::kWhole>, nullptr};
constexpr ItemReader kOverhangingReader{open_as<Shuffle::kOverhangs>, nullptr};
constexpr Codec kDeflatedCodec{"hdf5-deflate", &kDeflatedReader};
constexpr Codec kShuffledCodec{"hdf5-shuffle-deflate", &kShuffledReader};
constexpr Codec kOverhangingCodec{"hdf5-shuffle-deflate", &kOverhangingReader};

}  // namespace

const Codec& deflated_codec(bool is_shuffled, bool overhangs) {
  if (!is_shuffled) return kDeflatedCodec;
  return overhangs ? kOverhangingCodec : kShuffledCodec;
}

}  // namespace shw
