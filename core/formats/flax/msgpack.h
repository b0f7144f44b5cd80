// Parses heads of msgpack values (type and length) without reading their bodies.
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
  std::int64_t integer = 0;  // for integers and bools
  double real = 0;
  std::uint64_t length = 0;  // bytes of text, binary or extension; number of values of an array;
                             // pairs of a map
  std::int8_t type = 0;      // extension type
  std::uint64_t at = 0;      // offset of the head
};

class MsgpackReader {
 public:
  explicit MsgpackReader(const ByteSource& source) : source_(source) {}
  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return source_.size() - at_; }
  // kDamaged at the end of the file, for a byte that msgpack does not define, and for a length
  // beyond the file.
  Result<MsgpackHead> next();
  // Reads the body of a text; kDamaged above `most` bytes.
  Result<std::string> text(const MsgpackHead& head, std::uint64_t most);
  Status skip(std::uint64_t bytes);
  tl::unexpected<Error> damaged(std::uint64_t at, std::string what) const;

 private:
  Result<std::uint64_t> number(int bytes);
  Result<MsgpackHead> sized(MsgpackHead head, MsgpackHead::Kind kind, int bytes);
  // The head after a first byte that names a type and holds neither a value nor a length.
  Result<MsgpackHead> head_from_type_byte(MsgpackHead head, int byte);

  const ByteSource& source_;
  std::uint64_t at_ = 0;
  std::uint64_t held_from_ = 0;
  Bytes held_;
};

}  // namespace shw
