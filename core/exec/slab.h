// Memory that is used again and again: what it held stays in it, and nothing is cleared or touched
// before somebody writes there.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace shw {

class Slab {
 public:
  // Room for that many bytes; what was in it may be gone.
  std::span<std::byte> room(std::size_t bytes) {
    if (bytes > capacity_) {
      held_.reset();  // never both at once
      held_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {held_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> held_;
  std::size_t capacity_ = 0;
};

}  // namespace shw
