// Reads numbers from the body of an OCDBT file sequentially.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/little_endian.h"

namespace shw {

// Past the end numbers are 0 and `ok` is false, so one check after the last number suffices.
class OcdbtCursor {
 public:
  explicit OcdbtCursor(BytesView bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(this->byte());
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  unsigned byte() {
    const BytesView one = take(1);
    return one.empty() ? 0 : std::to_integer<unsigned>(one[0]);
  }
  // Every number takes at least a byte, which limits the memory reserved here.
  std::vector<std::uint64_t> numbers(std::uint64_t count) {
    std::vector<std::uint64_t> all;
    if (!has(count)) return all;
    all.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) all.push_back(number());
    return all;
  }
  BytesView take(std::uint64_t count) {
    if (!has(count)) return {};
    const BytesView taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  std::size_t at() const { return at_; }
  bool ok() const { return ok_; }
  void fail() { ok_ = false; }

 private:
  bool has(std::uint64_t count) {
    ok_ = ok_ && count <= bytes_.size() - at_;
    return ok_;
  }

  BytesView bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace shw
