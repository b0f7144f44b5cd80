// Binary encoding of the messages between processes. The decoder checks every announced length
// against the bytes that are left in the message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

class Encoder {
 public:
  void add(std::uint64_t number);
  void add(std::string_view text);
  void add(const std::vector<std::uint64_t>& numbers);
  void add(const Error& error);
  Bytes take() { return std::move(bytes_); }

 private:
  void append(BytesView bytes);
  Bytes bytes_;
};

class Decoder {
 public:
  explicit Decoder(BytesView bytes) : left_(bytes) {}
  Result<std::uint64_t> number();
  Result<std::string> text();
  Result<std::vector<std::uint64_t>> numbers();
  Result<Error> error();
  bool is_at_end() const { return left_.empty(); }

 private:
  Result<BytesView> take(std::uint64_t length);
  BytesView left_;
};

// The encoded bytes as a string, for interfaces that carry text.
inline std::string packed_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace shw
