#include "core/formats/npz/npz_codec.h"

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/inflating_stream.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/npz/npy_header.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

Result<ItemHeader> npz_header(const Checkpoint& checkpoint, ChunkId chunk, const ItemRange& range,
                              bool is_big_endian) {
  ItemHeader header;
  header.dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  header.sizes = copy_of(checkpoint.sizes(chunk));
  const auto view = checkpoint.view(chunk);
  header.strides =
      view && !view->strides.empty() ? copy_of(view->strides) : row_major_strides(header.sizes);
  header.payload_offset = range.offset;
  header.big_endian = is_big_endian;
  const auto needed = storage_needed(header.sizes, header.strides, 0);
  const auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed),
                                          std::uint64_t{size_of(header.dtype)})
                            : std::nullopt;
  if (!bytes)
    return fail(ErrorKind::kDamaged, "has impossible sizes or strides",
                {range.source->name(), range.offset});
  header.payload_length = *bytes;
  return header;
}

// Inflates a record and skips the array's header, to the elements.
Result<std::unique_ptr<ByteStream>> elements_of_record(const ItemRange& range) {
  auto begin = [&] {
    return inflating_stream(range.source, {"the deflated array", range.offset, range.length});
  };
  SHW_TRY(auto first, begin());
  Bytes head(kMostNpyHeader);
  SHW_TRY(std::size_t made, first->read(head));
  auto header = parse_npy_header(BytesView(head).first(made));
  if (!header)
    return fail(ErrorKind::kDamaged, header.error().message, {range.source->name(), range.offset});
  SHW_TRY(auto stream, begin());
  head.resize(static_cast<std::size_t>(header->length));
  SHW_TRY(made, stream->read(head));
  return stream;
}

Result<OpenItem> open_npz_array(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                bool is_deflated, bool is_big_endian) {
  OpenItem item;
  SHW_TRY(item.header, npz_header(checkpoint, chunk, range, is_big_endian));
  item.source = range.source;
  item.header.compressed = is_deflated;
  if (!is_deflated && item.header.payload_length > range.length)
    return fail(ErrorKind::kDamaged, "holds fewer bytes than its elements take",
                {range.source->name(), range.offset});
  if (is_deflated)
    item.storage = streamed_source(range.source->name(), item.header.payload_length,
                                   [range] { return elements_of_record(range); });
  return item;
}

template <bool is_deflated, bool is_big_endian>
Result<OpenItem> open_npz_as(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             ItemPart) {
  return open_npz_array(checkpoint, chunk, std::move(range), is_deflated, is_big_endian);
}

constexpr ItemReader kDeflatedReaderOfNpz{open_npz_as<true, false>, nullptr};
constexpr ItemReader kDeflatedBigReaderOfNpz{open_npz_as<true, true>, nullptr};
constexpr ItemReader kBigReaderOfNpz{open_npz_as<false, true>, nullptr};
constexpr Codec kNpzCodecs[] = {{"npz deflate", &kDeflatedReaderOfNpz},
                                {"npz deflate", &kDeflatedBigReaderOfNpz},
                                {"npz big-endian", &kBigReaderOfNpz}};

}  // namespace

const Codec& npz_codec(bool is_deflated, bool is_big_endian) {
  if (is_deflated) return kNpzCodecs[is_big_endian ? 1 : 0];
  return is_big_endian ? kNpzCodecs[2] : kRawCodec;
}

}  // namespace shw
