// Writes data.pkl with the opcodes and memo of torch's Python pickler (tests compare bytes with
// torch 2.15).
#include "core/formats/common/torch_item_write.h"

#include <fmt/core.h>

#include "core/base/checked.h"
#include "core/formats/common/byte_buffer.h"

namespace shw {
namespace {

// Builds data.pkl as torch's Python pickler does.
class TensorPickle {
 public:
  TensorPickle(Dtype dtype, ExtentsView sizes, std::int64_t elements) {
    const DtypeInfo& type = info(dtype);
    bool legacy = !type.storage_class.empty();
    out_.text("\x80\x02");
    global("torch._utils", legacy ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_.text("((");
    string("storage");
    if (legacy) {
      global("torch", type.storage_class);
    } else {
      global("torch.storage", "UntypedStorage");
    }
    string("0");
    string("cpu");
    integer(legacy ? elements : elements * static_cast<std::int64_t>(type.size));
    out_.text("t");
    memoize();
    out_.text("Q");
    integer(0);
    tuple(sizes);
    tuple(row_major_strides(sizes));
    out_.text("\x89");
    global("collections", "OrderedDict");
    out_.text(")R");
    memoize();
    if (!legacy) global("torch", type.name);
    out_.text("t");
    memoize();
    out_.text("R");
    memoize();
    out_.text(".");
  }
  BytesView view() const { return out_.view(); }

 private:
  void memoize() {
    // The memo has at most 13 objects, so that one-byte numbers suffice.
    out_.text("q").number(memo_++);
  }
  void global(std::string_view module, std::string_view name) {
    out_.text("c").text(module).text("\n").text(name).text("\n");
    memoize();
  }
  void string(std::string_view text) {
    out_.text("X").number(static_cast<std::uint32_t>(text.size())).text(text);
    memoize();
  }
  void integer(std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value);
    if (bits <= 0xFF) {
      out_.text("K").number(static_cast<std::uint8_t>(bits));
    } else if (bits <= 0xFFFF) {
      out_.text("M").number(static_cast<std::uint16_t>(bits));
    } else if (bits <= 0x7FFFFFFF) {
      out_.text("J").number(static_cast<std::uint32_t>(bits));
    } else {
      // Shortest two's complement; a set top bit needs one more byte.
      std::size_t length = static_cast<std::size_t>(std::bit_width(bits)) / 8 + 1;
      out_.text("\x8a").number(static_cast<std::uint8_t>(length));
      for (std::size_t i = 0; i < length; ++i)
        out_.number(static_cast<std::uint8_t>(i < 8 ? bits >> (8 * i) : 0));
    }
  }
  void tuple(ExtentsView values) {
    if (values.empty()) {
      out_.text(")");
      return;
    }
    if (values.size() > 3) out_.text("(");
    for (std::int64_t value : values) integer(value);
    constexpr std::string_view kShort[] = {"\x85", "\x86", "\x87"};
    out_.text(values.size() > 3 ? "t" : kShort[values.size() - 1]);
    memoize();
  }

  ByteBuffer out_;
  std::uint8_t memo_ = 0;
};

}  // namespace

Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       const PayloadWriter& payload, StorageMarks* marks) {
  auto elements = volume(sizes);
  auto bytes =
      elements ? checked_mul(*elements, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
  if (!bytes || dtype == Dtype::kUnknown || sizes.size() > kMaxDims ||
      static_cast<std::uint64_t>(*bytes) != payload.length)
    return fail(ErrorKind::kUsage, fmt::format("a payload of {} bytes is not a tensor {} of {}",
                                               payload.length, to_text(sizes), name(dtype)));
  TensorPickle pickle(dtype, sizes, *elements);
  return write_torch_archive(sink, {.pickle = payload_of(pickle.view()), .storages = {payload}},
                             marks);
}

Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       BytesView payload) {
  return write_torch_item(sink, dtype, sizes, payload_of(payload));
}

}  // namespace shw
