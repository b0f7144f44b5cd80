// The heads of msgpack values: what comes next, and how long it is. Bodies stay in the file.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

struct MsgpackHead {
  enum class Kind : std::uint8_t {
    kNil,
    kBool,
    kInteger,
    kFloat,
    kText,
    kBytes,
    kArray,
    kMap,
    kExtension
  };
  Kind kind = Kind::kNil;
  std::int64_t integer = 0;  // of an integer or a bool
  double real = 0;
  std::uint64_t length = 0;  // bytes of a text, of bytes, of an extension; values; pairs of a map
  std::int8_t type = 0;      // of an extension
  std::uint64_t at = 0;      // where the head begins
};

class MsgpackReader {
 public:
  explicit MsgpackReader(const ByteSource& source) : source_(source) {}
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return source_.size() - at_; }
  // kDamaged past the end, for a byte that msgpack does not have, and for a length that the file
  // cannot hold.
  Result<MsgpackHead> next();
  // The body of a text, at most `most` bytes of it.
  Result<std::string> text(const MsgpackHead& head, std::uint64_t most);
  Status skip(std::uint64_t bytes);
  tl::unexpected<Error> damaged(std::uint64_t at, std::string what) const;

 private:
  Result<std::uint64_t> number(int bytes);
  Result<MsgpackHead> sized(MsgpackHead head, MsgpackHead::Kind kind, int bytes);

  const ByteSource& source_;
  std::uint64_t at_ = 0;
  std::uint64_t held_from_ = 0;
  Bytes held_;
};

}  // namespace shw
