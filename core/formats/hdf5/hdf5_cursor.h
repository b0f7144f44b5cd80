// Reads consecutive numbers from bytes of an HDF5 file.
#pragma once

#include <string>

#include "core/base/bytes.h"
#include "core/base/little_endian.h"

namespace shw {

// Beyond the end everything reads as 0 and `ok` becomes false, so one check at the end suffices.
class Hdf5Cursor {
 public:
  explicit Hdf5Cursor(BytesView bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}
  template <class T>
  T take() {
    if (!has(sizeof(T))) return 0;
    T value = load_little<T>(bytes_, at_);
    at_ += sizeof(T);
    return value;
  }
  // A number of 1, 2, 4 or 8 bytes.
  std::uint64_t consume_number_of_size(std::size_t size) {
    if (!has(size)) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at_ + i]);
    at_ += size;
    return value;
  }
  std::string consume_text(std::size_t size) {
    if (!has(size)) return {};
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }
  void skip(std::size_t size) {
    if (has(size)) at_ += size;
  }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  bool ok() const { return ok_; }

 private:
  bool has(std::size_t size) {
    ok_ = ok_ && at_ <= bytes_.size() && size <= bytes_.size() - at_;
    return ok_;
  }

  BytesView bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace shw
