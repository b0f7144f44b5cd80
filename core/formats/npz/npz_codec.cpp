#include "core/formats/npz/npz_codec.h"

#include <algorithm>

#include "core/formats/common/chunk_header.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/npz/npy_header.h"
#include "core/formats/zip/inflating_stream.h"

namespace shw {
namespace {

// Inflates a record and skips the array's header, to the elements.
Result<std::unique_ptr<ByteStream>> elements_of_record(const ItemRange& range) {
  auto begin = [&] {
    return inflating_stream(range.source, {"the deflated array", range.offset, range.length});
  };
  SHW_TRY(auto first, begin());
  Bytes head(kMaxNpyHeader);
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
  SHW_TRY(item.header, whole_chunk_header(checkpoint, chunk, range));
  item.header.big_endian = is_big_endian;
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
