#include "core/formats/gguf/gguf_types.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/formats/gguf/gguf_blocks.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::uint32_t kMaxBlockElements = 256;  // of a block

// Decodes blocks while reading; every block can be decoded alone.
class DecodedBlocks final : public ByteSource {
 public:
  DecodedBlocks(ItemRange range, const GgufType& type, std::uint64_t size)
      : range_(std::move(range)), type_(type), size_(size) {}
  const std::string& name() const override { return range_.source->name(); }
  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      return fail(ErrorKind::kDamaged, "decodes to fewer bytes than its shape needs", {name()});
    const std::uint64_t made = std::uint64_t{type_.elements} * sizeof(float);
    while (!out.empty()) {
      const std::uint64_t first = offset / made, skipped = offset % made;
      const std::uint64_t asked = (skipped + out.size() + made - 1) / made;
      const std::uint64_t count = std::min<std::uint64_t>(asked, kBlocksAtOnce);
      SHW_TRY(Bytes blocks,
              read_bytes(*range_.source, range_.offset + first * type_.bytes, count * type_.bytes));
      const std::size_t part = std::min<std::uint64_t>(out.size(), count * made - skipped);
      decode(blocks, skipped, out.first(part));
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kBlocksAtOnce = 1024;

  void decode(const Bytes& blocks, std::uint64_t skipped, std::span<std::byte> out) const {
    std::array<float, kMaxBlockElements> elements{};
    const std::size_t made = type_.elements * sizeof(float);
    auto from = static_cast<std::size_t>(skipped);
    for (std::size_t at = 0; at < blocks.size() && !out.empty(); at += type_.bytes) {
      type_.decode(blocks.data() + at, elements.data());
      const std::size_t part = std::min(out.size(), made - from);
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(elements.data()) + from, part);
      out = out.subspan(part);
      from = 0;
    }
  }

  const ItemRange range_;
  const GgufType& type_;
  const std::uint64_t size_;
};

Result<OpenItem> open_blocks(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                             const GgufType& type) {
  OpenItem item;
  item.header.dtype = type.dtype;
  item.header.sizes = copy_of(checkpoint.sizes(chunk));
  item.header.strides = row_major_strides(item.header.sizes);
  item.header.payload_offset = range.offset;
  item.header.compressed = true;
  const auto elements = volume(item.header.sizes);
  const auto bytes =
      elements ? checked_mul(static_cast<std::uint64_t>(*elements), std::uint64_t{sizeof(float)})
               : std::nullopt;
  const bool is_whole = elements && *elements % type.elements == 0;
  if (!bytes || !is_whole ||
      static_cast<std::uint64_t>(*elements) / type.elements != range.length / type.bytes ||
      range.length % type.bytes != 0)
    return fail(ErrorKind::kDamaged, "has a number of blocks that does not match its shape",
                {range.source->name(), range.offset});
  item.header.payload_length = *bytes;
  item.source = range.source;
  item.storage = std::make_shared<DecodedBlocks>(std::move(range), type, *bytes);
  return item;
}

template <std::uint32_t id>
Result<OpenItem> open_as_type(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                              ItemPart) {
  return open_blocks(checkpoint, chunk, std::move(range), *find_gguf_type(id));
}

template <std::uint32_t id>
constexpr ItemReader kBlockReader{open_as_type<id>, nullptr};

constexpr Codec kDecodedBlocks[] = {
    {"GGUF Q4_0", &kBlockReader<2>},    {"GGUF Q4_1", &kBlockReader<3>},
    {"GGUF Q5_0", &kBlockReader<6>},    {"GGUF Q5_1", &kBlockReader<7>},
    {"GGUF Q8_0", &kBlockReader<8>},    {"GGUF Q2_K", &kBlockReader<10>},
    {"GGUF Q3_K", &kBlockReader<11>},   {"GGUF Q4_K", &kBlockReader<12>},
    {"GGUF Q5_K", &kBlockReader<13>},   {"GGUF Q6_K", &kBlockReader<14>},
    {"GGUF Q8_K", &kBlockReader<15>},   {"GGUF IQ4_NL", &kBlockReader<20>},
    {"GGUF IQ4_XS", &kBlockReader<23>}, {"GGUF MXFP4", &kBlockReader<39>},
    {"GGUF NVFP4", &kBlockReader<40>},  {"GGUF Q1_0", &kBlockReader<41>},
    {"GGUF Q2_0", &kBlockReader<42>},   {"GGUF TQ1_0", &kBlockReader<34>},
    {"GGUF TQ2_0", &kBlockReader<35>},  {"GGUF IQ2_XXS", &kBlockReader<16>},
    {"GGUF IQ2_XS", &kBlockReader<17>}, {"GGUF IQ3_XXS", &kBlockReader<18>},
    {"GGUF IQ1_S", &kBlockReader<19>},  {"GGUF IQ3_S", &kBlockReader<21>},
    {"GGUF IQ2_S", &kBlockReader<22>},  {"GGUF IQ1_M", &kBlockReader<29>},
    {"GGUF Q8_1", &kBlockReader<9>},
};

constexpr GgufType plain(std::uint32_t id, std::string_view name, std::uint32_t bytes,
                         Dtype dtype) {
  return {id, name, 1, bytes, dtype, nullptr, &kRawCodec};
}
constexpr GgufType decoded(std::uint32_t id, std::string_view name, std::uint32_t elements,
                           std::uint32_t bytes, GgufDecode* decode, std::size_t codec) {
  return {id, name, elements, bytes, Dtype::kFloat32, decode, &kDecodedBlocks[codec]};
}

constexpr GgufType kTypes[] = {
    plain(0, "F32", 4, Dtype::kFloat32),
    plain(1, "F16", 2, Dtype::kFloat16),
    decoded(2, "Q4_0", 32, 18, decode_gguf_q4_0, 0),
    decoded(3, "Q4_1", 32, 20, decode_gguf_q4_1, 1),
    decoded(6, "Q5_0", 32, 22, decode_gguf_q5_0, 2),
    decoded(7, "Q5_1", 32, 24, decode_gguf_q5_1, 3),
    decoded(8, "Q8_0", 32, 34, decode_gguf_q8_0, 4),
    decoded(9, "Q8_1", 32, 36, decode_gguf_q8_1, 26),
    decoded(10, "Q2_K", 256, 84, decode_gguf_q2_k, 5),
    decoded(11, "Q3_K", 256, 110, decode_gguf_q3_k, 6),
    decoded(12, "Q4_K", 256, 144, decode_gguf_q4_k, 7),
    decoded(13, "Q5_K", 256, 176, decode_gguf_q5_k, 8),
    decoded(14, "Q6_K", 256, 210, decode_gguf_q6_k, 9),
    decoded(15, "Q8_K", 256, 292, decode_gguf_q8_k, 10),
    decoded(16, "IQ2_XXS", 256, 66, decode_gguf_iq2_xxs, 19),
    decoded(17, "IQ2_XS", 256, 74, decode_gguf_iq2_xs, 20),
    decoded(18, "IQ3_XXS", 256, 98, decode_gguf_iq3_xxs, 21),
    decoded(19, "IQ1_S", 256, 50, decode_gguf_iq1_s, 22),
    decoded(20, "IQ4_NL", 32, 18, decode_gguf_iq4_nl, 11),
    decoded(21, "IQ3_S", 256, 110, decode_gguf_iq3_s, 23),
    decoded(22, "IQ2_S", 256, 82, decode_gguf_iq2_s, 24),
    decoded(23, "IQ4_XS", 256, 136, decode_gguf_iq4_xs, 12),
    plain(24, "I8", 1, Dtype::kInt8),
    plain(25, "I16", 2, Dtype::kInt16),
    plain(26, "I32", 4, Dtype::kInt32),
    plain(27, "I64", 8, Dtype::kInt64),
    plain(28, "F64", 8, Dtype::kFloat64),
    decoded(29, "IQ1_M", 256, 56, decode_gguf_iq1_m, 25),
    plain(30, "BF16", 2, Dtype::kBfloat16),
    decoded(34, "TQ1_0", 256, 54, decode_gguf_tq1_0, 17),
    decoded(35, "TQ2_0", 256, 66, decode_gguf_tq2_0, 18),
    decoded(39, "MXFP4", 32, 17, decode_gguf_mxfp4, 13),
    decoded(40, "NVFP4", 64, 36, decode_gguf_nvfp4, 14),
    decoded(41, "Q1_0", 128, 18, decode_gguf_q1_0, 15),
    decoded(42, "Q2_0", 64, 18, decode_gguf_q2_0, 16),
};

}  // namespace

const GgufType* find_gguf_type(std::uint32_t id) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [id](const GgufType& type) { return type.id == id; });
  return found == std::end(kTypes) ? nullptr : &*found;
}

}  // namespace shw
