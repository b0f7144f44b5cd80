#include "core/formats/torch_file/latin1_codec.h"

#include <algorithm>
#include <memory>

#include "core/base/checked.h"
#include "core/formats/common/chunk_header.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/zip/byte_stream.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::uint64_t kTextStep = std::uint64_t{256} << 10;

class Latin1Stream final : public ByteStream {
 public:
  explicit Latin1Stream(ItemRange range) : range_(std::move(range)) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    std::size_t made = 0;
    while (made < out.size()) {
      if (next_ == held_.size()) {
        SHW_TRY(bool has_more, go_on());
        if (!has_more) break;
      }
      const auto byte = std::to_integer<unsigned>(held_[next_++]);
      if (!is_within_) {
        if (byte < 0x80) {
          out[made++] = std::byte(byte);
          continue;
        }
        if (byte != 0xC2 && byte != 0xC3) return not_latin1_error();
        begin_ = byte;
        is_within_ = true;
        continue;
      }
      if ((byte & 0xC0) != 0x80) return not_latin1_error();
      out[made++] = std::byte(((begin_ & 0x03) << 6) | (byte & 0x3F));
      is_within_ = false;
    }
    return made;
  }

 private:
  tl::unexpected<Error> not_latin1_error() const {
    return fail(ErrorKind::kDamaged, "holds text that is not the bytes of an array",
                {range_.source->name(), range_.offset + done_ - (held_.size() - next_) - 1});
  }

  Result<bool> go_on() {
    const std::uint64_t length = std::min(kTextStep, range_.length - done_);
    if (length == 0) return false;
    SHW_TRY(held_, read_bytes(*range_.source, range_.offset + done_, length));
    done_ += length;
    next_ = 0;
    return true;
  }

  ItemRange range_;
  Bytes held_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;
  unsigned begin_ = 0;
  bool is_within_ = false;
};

Result<OpenItem> open_latin1_as(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                bool is_big_endian) {
  OpenItem item;
  SHW_TRY(item.header, whole_chunk_header(checkpoint, chunk, range));
  item.header.big_endian = is_big_endian;
  item.header.compressed = true;
  const std::uint64_t bytes = item.header.payload_length;
  if (bytes > range.length)
    return fail(ErrorKind::kDamaged, "holds fewer bytes than its elements take",
                {range.source->name(), range.offset});
  item.source = range.source;
  item.storage = streamed_source(range.source->name(), bytes, [range] {
    return Result<std::unique_ptr<ByteStream>>(std::make_unique<Latin1Stream>(range));
  });
  return item;
}

Result<OpenItem> open_latin1(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             ItemPart) {
  return open_latin1_as(checkpoint, chunk, std::move(range), false);
}
Result<OpenItem> open_latin1_big(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                 ItemPart) {
  return open_latin1_as(checkpoint, chunk, std::move(range), true);
}
Result<OpenItem> open_bytes_big(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                                ItemPart part) {
  SHW_TRY(OpenItem item, kRawCodec.reader->open(checkpoint, chunk, std::move(range), part));
  item.header.big_endian = true;
  return item;
}

constexpr ItemReader kLatin1Reader{open_latin1, nullptr};
constexpr ItemReader kLatin1BigReader{open_latin1_big, nullptr};
constexpr ItemReader kBytesBigReader{open_bytes_big, nullptr};

}  // namespace

constexpr Codec kLatin1Codec{"pickle text", &kLatin1Reader};
constexpr Codec kLatin1BigCodec{"pickle text, big-endian", &kLatin1BigReader};
constexpr Codec kBytesBigCodec{"pickle bytes, big-endian", &kBytesBigReader};

}  // namespace shw
