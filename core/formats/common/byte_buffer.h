// Assembles bytes from numbers and text, little-endian.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/base/bytes.h"

namespace shw {

class ByteBuffer {
 public:
  template <std::unsigned_integral T>
  ByteBuffer& number(T value) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteBuffer& text(std::string_view text) {
    auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  ByteBuffer& fill(std::size_t count, char c) {
    bytes_.insert(bytes_.end(), count, static_cast<std::byte>(c));
    return *this;
  }
  BytesView view() const { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace shw
