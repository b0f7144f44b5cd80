// Numbers and words as bytes, for processes that tell each other what they found. What is unpacked
// is checked: an announced length goes no further than what is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

class Packer {
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

class Unpacker {
 public:
  explicit Unpacker(BytesView bytes) : left_(bytes) {}
  Result<std::uint64_t> number();
  Result<std::string> text();
  Result<std::vector<std::uint64_t>> numbers();
  Result<Error> error();
  bool is_at_end() const { return left_.empty(); }

 private:
  Result<BytesView> take(std::uint64_t length);
  BytesView left_;
};

// Packed bytes as text, for what carries text.
inline std::string packed_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace shw
