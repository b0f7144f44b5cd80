// Packets of SFTP version 3 (draft-ietf-secsh-filexfer-02): big-endian numbers and length-prefixed
// strings. Packets are untrusted: reading beyond the end sets a flag and returns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace shw {

enum class SftpType : std::uint8_t {
  kInit = 1,
  kVersion = 2,
  kOpen = 3,
  kClose = 4,
  kRead = 5,
  kFstat = 8,
  kOpenDirectory = 11,
  kReadDirectory = 12,
  kStat = 17,
  kStatus = 101,
  kHandle = 102,
  kData = 103,
  kName = 104,
  kAttributes = 105
};

inline constexpr std::uint32_t kSftpEndOfFile = 1, kSftpNoSuchFile = 2, kSftpDenied = 3;

class SftpWriter {
 public:
  SftpWriter& byte(SftpType type) {
    text_ += static_cast<char>(type);
    return *this;
  }
  SftpWriter& number32(std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) text_ += static_cast<char>(value >> shift & 255);
    return *this;
  }
  SftpWriter& number64(std::uint64_t value) {
    number32(static_cast<std::uint32_t>(value >> 32));
    return number32(static_cast<std::uint32_t>(value & 0xFFFFFFFF));
  }
  SftpWriter& text(std::string_view value) {
    number32(static_cast<std::uint32_t>(value.size()));
    text_ += value;
    return *this;
  }
  const std::string& bytes() const { return text_; }

 private:
  std::string text_;
};

class SftpReader {
 public:
  explicit SftpReader(BytesView bytes) : bytes_(bytes) {}
  bool is_good() const { return good_; }
  std::uint32_t number32() {
    const BytesView part = take(4);
    std::uint32_t value = 0;
    for (std::byte byte : part) value = value << 8 | std::to_integer<std::uint32_t>(byte);
    return value;
  }
  std::uint64_t number64() {
    const std::uint64_t high = number32();
    return high << 32 | number32();
  }
  BytesView block() { return take(number32()); }
  std::string text() {
    const BytesView part = block();
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

 private:
  BytesView take(std::size_t length) {
    good_ = good_ && length <= bytes_.size();
    if (!good_) return {};
    const BytesView part = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return part;
  }
  BytesView bytes_;
  bool good_ = true;
};

struct SftpAttributes {
  std::uint64_t size = 0;
  std::uint32_t mode = 0, modified = 0;
  bool has_size = false, has_mode = false;
  bool is_folder() const { return (mode & 0170000) == 0040000; }
  bool is_link() const { return (mode & 0170000) == 0120000; }
  bool is_file() const { return has_mode ? (mode & 0170000) == 0100000 : has_size; }
};

inline SftpAttributes read_attributes(SftpReader& reader) {
  SftpAttributes attributes;
  const std::uint32_t flags = reader.number32();
  attributes.has_size = (flags & 1) != 0;
  attributes.has_mode = (flags & 4) != 0;
  if (attributes.has_size) attributes.size = reader.number64();
  if ((flags & 2) != 0) reader.number64();  // user and group
  if (attributes.has_mode) attributes.mode = reader.number32();
  if ((flags & 8) != 0) {
    reader.number32();  // last read
    attributes.modified = reader.number32();
  }
  const std::uint32_t more = (flags & 0x80000000U) != 0 ? reader.number32() : 0;
  for (std::uint32_t i = 0; i < more && reader.is_good(); ++i) {
    reader.block();
    reader.block();
  }
  return attributes;
}

}  // namespace shw
