#include "core/formats/orbax/zarr_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/formats/common/chunk_header.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/crc32c.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/zip/inflating_stream.h"
#include "core/formats/zip/zstd_stream.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// A chunk past the end of its array contains unused elements: its stream may be longer than the
// part that is read, by any factor.
constexpr std::uint64_t kAnyLength = std::uint64_t{1} << 46;
constexpr std::uint64_t kChecksum = 4;

// Length of the gzip header (RFC 1952) before the deflated bytes.
Result<std::uint64_t> gzip_head(const ItemRange& range) {
  constexpr std::uint64_t kFixed = 10, kMaxHead = 4096;
  SHW_TRY(Bytes head, read_bytes(*range.source, range.offset, std::min(range.length, kMaxHead)));
  auto damaged = [&] {
    return fail(ErrorKind::kDamaged, "is not a gzip stream", {range.source->name(), range.offset});
  };
  if (head.size() < kFixed || head[0] != std::byte{0x1F} || head[1] != std::byte{0x8B} ||
      head[2] != std::byte{8})
    return damaged();
  const unsigned flags = std::to_integer<unsigned>(head[3]);
  std::size_t at = kFixed;
  if ((flags & 4) != 0) {
    if (head.size() < at + 2) return damaged();
    at += 2u + load_little<std::uint16_t>(head, at);
  }
  for (unsigned text : {8u, 16u}) {  // file name, comment
    if ((flags & text) == 0) continue;
    while (at < head.size() && head[at] != std::byte{0}) ++at;
    ++at;
  }
  if ((flags & 2) != 0) at += 2;
  if (at >= head.size()) return damaged();
  return at;
}

Result<std::unique_ptr<ByteStream>> chunk_stream(const ItemRange& range, const ZarrPipe& pipe) {
  switch (pipe.compression) {
    case ZarrCompression::kZstd:
      return zstd_stream(range.source, range.offset, range.length, kAnyLength);
    case ZarrCompression::kZlib:
      return inflating_stream(range.source, {"the compressed chunk", range.offset, range.length,
                                             std::nullopt, DeflateForm::kZlib});
    default:
      break;
  }
  constexpr std::uint64_t kBehind = 8;  // checksum and length after the data
  SHW_TRY(std::uint64_t head, gzip_head(range));
  if (range.length < head + kBehind)
    return fail(ErrorKind::kDamaged, "the gzip stream is truncated",
                {range.source->name(), range.offset});
  return inflating_stream(
      range.source, {"the compressed chunk", range.offset + head, range.length - head - kBehind,
                     std::nullopt, DeflateForm::kBare});
}

// Verifies the checksum and returns the range without it.
Result<ItemRange> range_without_checksum(ItemRange range) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  if (range.length < kChecksum)
    return fail(ErrorKind::kDamaged, "is too short for its checksum",
                {range.source->name(), range.offset});
  range.length -= kChecksum;
  std::uint32_t actual = 0;
  for (std::uint64_t at = 0; at < range.length; at += kPiece) {
    SHW_TRY(Bytes piece,
            read_bytes(*range.source, range.offset + at, std::min(kPiece, range.length - at)));
    actual = crc32c_of(piece, actual);
  }
  SHW_TRY(Bytes tail, read_bytes(*range.source, range.offset + range.length, kChecksum));
  if (load_little<std::uint32_t>(tail) == actual) return range;
  return fail(ErrorKind::kDamaged,
              fmt::format("does not match its checksum: {:08x} recorded, {:08x} computed",
                          load_little<std::uint32_t>(tail), actual),
              {range.source->name(), range.offset});
}

Result<OpenItem> open_zarr_chunk(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                 const ZarrPipe& pipe, ItemPart part) {
  OpenItem item;
  SHW_TRY(item.header, whole_chunk_header(checkpoint, chunk, range));
  item.header.big_endian = pipe.is_big_endian;
  item.source = range.source;
  if (pipe.has_checksum) {
    if (part == ItemPart::kHeader) {
      range.length -= std::min(range.length, kChecksum);
    } else {
      SHW_TRY(range, range_without_checksum(std::move(range)));
    }
  }
  if (pipe.compression == ZarrCompression::kNone) {
    if (item.header.payload_length > range.length)
      return fail(ErrorKind::kDamaged,
                  fmt::format("holds {} bytes, but its elements need {}", range.length,
                              item.header.payload_length),
                  {range.source->name(), range.offset});
    return item;
  }
  item.header.compressed = true;
  item.storage = streamed_source(range.source->name(), item.header.payload_length,
                                 [range, pipe]() { return chunk_stream(range, pipe); });
  return item;
}

constexpr std::size_t kPipes = static_cast<std::size_t>(ZarrCompression::kCount) * 4;

constexpr ZarrPipe zarr_pipe_from_number(std::size_t number) {
  return {static_cast<ZarrCompression>(number / 4), (number & 1) != 0, (number & 2) != 0};
}
constexpr std::size_t number_of(const ZarrPipe& pipe) {
  return static_cast<std::size_t>(pipe.compression) * 4 + (pipe.is_big_endian ? 1u : 0u) +
         (pipe.has_checksum ? 2u : 0u);
}

template <std::size_t number>
Result<OpenItem> open_as_pipe(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                              ItemPart part) {
  return open_zarr_chunk(checkpoint, chunk, std::move(range), zarr_pipe_from_number(number), part);
}
template <std::size_t number>
constexpr ItemReader kPipeReader{open_as_pipe<number>, nullptr};

constexpr std::string_view kPipeNames[] = {"zarr", "zarr zstd", "zarr gzip", "zarr zlib"};

template <std::size_t... number>
constexpr std::array<Codec, sizeof...(number)> pipe_codecs(std::index_sequence<number...>) {
  return {{{kPipeNames[number / 4], &kPipeReader<number>}...}};
}
constexpr auto kPipeCodecs = pipe_codecs(std::make_index_sequence<kPipes>());

Result<OpenItem> open_zarr_zeros(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                 ItemPart) {
  OpenItem item;
  SHW_TRY(item.header, whole_chunk_header(checkpoint, chunk, range));
  item.header.compressed = true;
  item.source = range.source;
  item.alike = Bytes(size_of(item.header.dtype));
  item.stored = [](std::uint64_t first, std::uint64_t last) -> Result<Bytes> {
    return Bytes(static_cast<std::size_t>(last - first));
  };
  return item;
}
constexpr ItemReader kZerosOfZarrReader{open_zarr_zeros, nullptr};

}  // namespace

constexpr Codec kZarrZerosCodec{"zarr chunk that was not written", &kZerosOfZarrReader};

const Codec& zarr_codec(const ZarrPipe& pipe) {
  const std::size_t number = number_of(pipe);
  return number == 0 ? kRawCodec : kPipeCodecs[number];
}

}  // namespace shw
