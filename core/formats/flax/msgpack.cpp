#include "core/formats/flax/msgpack.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace shw {
namespace {

constexpr std::uint64_t kHeldBytes = 1 << 16;

using MsgpackKind = MsgpackHead::Kind;

bool is_counted(MsgpackKind kind) {
  return kind == MsgpackKind::kText || kind == MsgpackKind::kBytes || kind == MsgpackKind::kArray ||
         kind == MsgpackKind::kMap || kind == MsgpackKind::kExtension;
}

MsgpackHead integer(MsgpackHead head, std::int64_t value) {
  head.kind = MsgpackKind::kInteger;
  head.integer = value;
  return head;
}

}  // namespace

tl::unexpected<Error> MsgpackReader::damaged(std::uint64_t at, std::string what) const {
  return fail(ErrorKind::kDamaged, std::move(what), {source_.name(), at});
}

Status MsgpackReader::skip(std::uint64_t bytes) {
  if (bytes > left())
    return damaged(
        at_, fmt::format("is truncated: {} bytes should follow, but {} are left", bytes, left()));
  at_ += bytes;
  return {};
}

// Reads a big-endian number.
Result<std::uint64_t> MsgpackReader::number(int bytes) {
  if (static_cast<std::uint64_t>(bytes) > left())
    return damaged(at_, "is truncated inside a value");
  const bool is_held =
      at_ >= held_from_ && at_ + static_cast<std::uint64_t>(bytes) <= held_from_ + held_.size();
  if (!is_held) {
    SHW_TRY(held_, read_bytes(source_, at_, std::min(kHeldBytes, left())));
    held_from_ = at_;
  }
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value = value << 8 |
            static_cast<std::uint64_t>(held_[static_cast<std::size_t>(at_++ - held_from_)]);
  return value;
}

Result<MsgpackHead> MsgpackReader::sized(MsgpackHead head, MsgpackKind kind, int bytes) {
  head.kind = kind;
  if (bytes > 0) {
    SHW_TRY(head.length, number(bytes));
  }
  if (kind == MsgpackKind::kExtension) {
    SHW_TRY(std::uint64_t type, number(1));
    head.type = static_cast<std::int8_t>(type);
  }
  // Every value takes at least one byte, a pair two.
  const std::uint64_t needed = kind == MsgpackKind::kMap ? 2 * head.length : head.length;
  if (is_counted(kind) && needed > left())
    return damaged(head.at, fmt::format("announces {} {}, but only {} bytes are left", head.length,
                                        kind == MsgpackKind::kMap     ? "pairs"
                                        : kind == MsgpackKind::kArray ? "values"
                                                                      : "bytes",
                                        left()));
  return head;
}

Result<MsgpackHead> MsgpackReader::next() {
  MsgpackHead head;
  head.at = at_;
  SHW_TRY(std::uint64_t byte, number(1));
  auto short_one = [&](MsgpackKind kind, std::uint64_t length) {
    head.length = length;
    return sized(head, kind, 0);
  };
  if (byte <= 0x7f) return integer(head, static_cast<std::int64_t>(byte));
  if (byte >= 0xe0) return integer(head, static_cast<std::int64_t>(byte) - 256);
  if (byte <= 0x8f) return short_one(MsgpackKind::kMap, byte & 15);
  if (byte <= 0x9f) return short_one(MsgpackKind::kArray, byte & 15);
  if (byte <= 0xbf) return short_one(MsgpackKind::kText, byte & 31);
  if (byte >= 0xd4 && byte <= 0xd8)
    return short_one(MsgpackKind::kExtension, std::uint64_t{1} << (byte - 0xd4));
  return head_from_type_byte(head, static_cast<int>(byte));
}

Result<MsgpackHead> MsgpackReader::head_from_type_byte(MsgpackHead head, int byte) {
  const int width = 1 << (byte & 3);  // of unsigned and signed integers
  switch (byte) {
    case 0xc0:
      return head;
    case 0xc2:
    case 0xc3:
      head.kind = MsgpackKind::kBool;
      head.integer = byte == 0xc3 ? 1 : 0;
      return head;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return sized(head, MsgpackKind::kBytes, 1 << (byte - 0xc4));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return sized(head, MsgpackKind::kExtension, 1 << (byte - 0xc7));
    case 0xca: {
      SHW_TRY(std::uint64_t bits, number(4));
      head.kind = MsgpackKind::kFloat;
      head.real = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return head;
    }
    case 0xcb: {
      SHW_TRY(std::uint64_t bits, number(8));
      head.kind = MsgpackKind::kFloat;
      head.real = std::bit_cast<double>(bits);
      return head;
    }
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: {
      SHW_TRY(std::uint64_t value, number(width));
      if (value > static_cast<std::uint64_t>(INT64_MAX))
        return damaged(head.at, "has a number beyond 63 bits");
      return integer(head, static_cast<std::int64_t>(value));
    }
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      SHW_TRY(std::uint64_t value, number(width));
      const int unused = 64 - 8 * width;
      return integer(head, static_cast<std::int64_t>(value << unused) >> unused);
    }
    case 0xd9:
    case 0xda:
    case 0xdb:
      return sized(head, MsgpackKind::kText, 1 << (byte - 0xd9));
    case 0xdc:
    case 0xdd:
      return sized(head, MsgpackKind::kArray, byte == 0xdc ? 2 : 4);
    case 0xde:
    case 0xdf:
      return sized(head, MsgpackKind::kMap, byte == 0xde ? 2 : 4);
    default:
      return damaged(head.at, fmt::format("has the byte {:#04x}, which is invalid in msgpack: it "
                                          "is damaged or has another format",
                                          byte));
  }
}

Result<std::string> MsgpackReader::text(const MsgpackHead& head, std::uint64_t most) {
  if (head.kind != MsgpackKind::kText && head.kind != MsgpackKind::kBytes)
    return damaged(head.at, "has a value that is not text where text is expected");
  if (head.length > most)
    return damaged(head.at, fmt::format("has a text of {} bytes where at most {} are expected",
                                        head.length, most));
  SHW_TRY(Bytes bytes, read_bytes(source_, at_, head.length));
  at_ += head.length;
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace shw
