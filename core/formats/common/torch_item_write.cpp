// The bytes that torch 2.7 and later write for one tensor on a stream, down to the serialization id
// (compared byte for byte with torch 2.15 in tests).
#include "core/formats/common/torch_item_write.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cstring>

#include "core/base/checked.h"
#include "core/formats/common/crc32.h"

namespace shw {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint32_t kWide = 0xFFFFFFFFu;
constexpr std::uint64_t kRecordHeaderSize = 30;
constexpr std::uint16_t kFlagUtf8 = 0x0800;
constexpr std::uint16_t kFlagSizesFollow = 0x0008;
// torch hashes the set of record names with std::hash; the records are always these, so is the hash
// (libstdc++ on x86-64; readers take any forty digits).
constexpr std::string_view kNamesHash = "15728199511854643026";

class Buffer {
 public:
  template <std::unsigned_integral T>
  Buffer& number(T value) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Buffer& text(std::string_view text) {
    auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Buffer& fill(std::size_t count, char c) {
    bytes_.insert(bytes_.end(), count, static_cast<std::byte>(c));
    return *this;
  }
  BytesView view() const { return bytes_; }

 private:
  Bytes bytes_;
};

// data.pkl, with the opcodes and the memo that torch's Python pickler makes.
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
    // At most 13 objects.
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
      // Two's complement, as short as can be; a set top bit needs one more byte.
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

  Buffer out_;
  std::uint8_t memo_ = 0;
};

// The archive around the records, as torch's copy of miniz writes it.
class Archive {
 public:
  explicit Archive(ByteSink& sink) : sink_(sink), base_(sink.position()) {}

  Status add(std::string_view name, BytesView bytes, bool counts = true) {
    return add(
        name, bytes.size(),
        [&](ByteSink& sink) -> Result<std::uint32_t> {
          SHW_CHECK(sink.write(bytes));
          return crc32_of(bytes);
        },
        counts);
  }

  Status add(std::string_view name, std::uint64_t length,
             const std::function<Result<std::uint32_t>(ByteSink&)>& write, bool counts = true) {
    Record record{"archive/" + std::string(name), position(), length, 0};
    SHW_CHECK(write_local(record));
    std::uint64_t before = sink_.position();
    SHW_TRY(record.crc, write(sink_));
    if (sink_.position() - before != length)
      return fail(ErrorKind::kUsage, fmt::format("the payload of {} bytes was written as {}",
                                                 length, sink_.position() - before));
    SHW_CHECK(write_descriptor(record));
    // An empty record is left out of the id.
    if (counts && length != 0) mix(record.crc);
    records_.push_back(std::move(record));
    return {};
  }

  // Twenty digits for the names, twenty for the CRCs of all records before.
  std::string serialization_id() const { return fmt::format("{}{:020}", kNamesHash, crc_hash_); }

  // The directory and the three end records. Returns the archive's length.
  Result<std::uint64_t> finish() {
    std::uint64_t begin = position();
    Buffer directory;
    for (const Record& record : records_) write_entry(directory, record);
    SHW_CHECK(sink_.write(directory.view()));
    SHW_CHECK(write_end(begin, position()));
    return position();
  }

 private:
  struct Record {
    std::string name;
    std::uint64_t offset, length;
    std::uint32_t crc;
    bool large() const { return length >= kWide; }
    bool far() const { return offset >= kWide; }
    bool wide() const { return large() || far(); }
    std::uint16_t flags() const {
      return static_cast<std::uint16_t>(kFlagUtf8 | (length == 0 ? 0 : kFlagSizesFollow));
    }
    std::uint64_t zip64_size() const {
      return wide() ? 4u + (large() ? 16u : 0u) + (far() ? 8u : 0u) : 0u;
    }
  };

  std::uint64_t position() const { return sink_.position() - base_; }

  // c10::hash_combine
  void mix(std::uint32_t crc) {
    crc_hash_ ^= crc + std::uint64_t{0x9e3779b9} + (crc_hash_ << 6) + (crc_hash_ >> 2);
  }

  static void write_zip64(Buffer& out, const Record& record) {
    if (!record.wide()) return;
    out.number(std::uint16_t{1}).number(static_cast<std::uint16_t>(record.zip64_size() - 4));
    if (record.large()) out.number(record.length).number(record.length);
    if (record.far()) out.number(record.offset);
  }

  Status write_local(const Record& record) {
    std::uint64_t start =
        record.offset + kRecordHeaderSize + record.name.size() + record.zip64_size() + 4;
    std::uint64_t padding = (kAlignment - start % kAlignment) % kAlignment;
    Buffer out;
    out.text("PK\3\4").number(std::uint16_t{0}).number(record.flags()).fill(18, '\0');
    out.number(static_cast<std::uint16_t>(record.name.size()));
    out.number(static_cast<std::uint16_t>(record.zip64_size() + 4 + padding));
    out.text(record.name);
    write_zip64(out, record);
    out.text("FB").number(static_cast<std::uint16_t>(padding)).fill(padding, 'Z');
    return sink_.write(out.view());
  }

  Status write_descriptor(const Record& record) {
    if (record.length == 0) return {};
    Buffer out;
    out.text("PK\7\x08").number(record.crc);
    if (record.wide()) {
      out.number(record.length).number(record.length);
    } else {
      out.number(static_cast<std::uint32_t>(record.length));
      out.number(static_cast<std::uint32_t>(record.length));
    }
    return sink_.write(out.view());
  }

  static void write_entry(Buffer& out, const Record& record) {
    std::uint32_t length = record.large() ? kWide : static_cast<std::uint32_t>(record.length);
    out.text("PK\1\2").fill(4, '\0').number(record.flags()).fill(6, '\0').number(record.crc);
    out.number(length).number(length).number(static_cast<std::uint16_t>(record.name.size()));
    out.number(static_cast<std::uint16_t>(record.zip64_size())).fill(10, '\0');
    out.number(record.far() ? kWide : static_cast<std::uint32_t>(record.offset));
    out.text(record.name);
    write_zip64(out, record);
  }

  Status write_end(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t count = records_.size(), length = end - begin;
    Buffer out;
    out.text("PK\6\6").number(std::uint64_t{44});
    out.number(std::uint16_t{0x031E}).number(std::uint16_t{45}).fill(8, '\0');
    out.number(count).number(count).number(length).number(begin);
    out.text("PK\6\7").fill(4, '\0').number(end).number(std::uint32_t{1});
    out.text("PK\5\6").fill(4, '\0');
    out.number(static_cast<std::uint16_t>(count)).number(static_cast<std::uint16_t>(count));
    out.number(static_cast<std::uint32_t>(length));
    out.number(begin >= kWide ? kWide : static_cast<std::uint32_t>(begin)).fill(2, '\0');
    return sink_.write(out.view());
  }

  ByteSink& sink_;
  std::uint64_t base_;
  std::vector<Record> records_;
  std::uint64_t crc_hash_ = 0;
};

BytesView bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       const PayloadWriter& payload) {
  auto elements = volume(sizes);
  auto bytes =
      elements ? checked_mul(*elements, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
  if (!bytes || dtype == Dtype::kUnknown || sizes.size() > kMaxDims ||
      static_cast<std::uint64_t>(*bytes) != payload.length)
    return fail(ErrorKind::kUsage, fmt::format("a payload of {} bytes is no tensor {} of {}",
                                               payload.length, to_text(sizes), name(dtype)));
  Archive archive(sink);
  SHW_CHECK(archive.add("data.pkl", TensorPickle(dtype, sizes, *elements).view()));
  SHW_CHECK(archive.add(".format_version", bytes_of("1")));
  SHW_CHECK(archive.add(".storage_alignment", bytes_of("64")));
  SHW_CHECK(archive.add("byteorder", bytes_of("little")));
  SHW_CHECK(archive.add("data/0", payload.length, payload.write));
  SHW_CHECK(archive.add("version", bytes_of("3\n")));
  SHW_CHECK(archive.add(".data/serialization_id", bytes_of(archive.serialization_id()), false));
  return archive.finish();
}

Result<std::uint64_t> write_torch_item(ByteSink& sink, Dtype dtype, ExtentsView sizes,
                                       BytesView payload) {
  PayloadWriter writer{[&](ByteSink& out) -> Result<std::uint32_t> {
                         SHW_CHECK(out.write(payload));
                         return crc32_of(payload);
                       },
                       payload.size()};
  return write_torch_item(sink, dtype, sizes, writer);
}

}  // namespace shw
