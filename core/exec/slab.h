// Reusable buffers. Memory is neither cleared nor touched before
// use.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/page_memory.h"

namespace shw {

// Provides memory with special properties, such as pinned host memory. `take` may return null;
// ordinary memory is used then. Thread-safe.
struct SlabMemory {
  std::byte* (*take)(std::size_t bytes, int device);
  void (*give_back)(std::byte* bytes);
  int device = 0;
};

class Slab {
 public:
  // A buffer of `bytes` bytes with undefined contents. `memory`: null for ordinary memory.
  std::span<std::byte> room(std::size_t bytes, const SlabMemory* memory = nullptr) {
    if (bytes > capacity_) {
      held_.reset();  // frees the old buffer before allocating the new one
      held_ = take(bytes, memory);
      capacity_ = bytes;
    }
    return {held_.get(), bytes};
  }

 private:
  static PageMemory take(std::size_t bytes, const SlabMemory* memory) {
    std::byte* own = memory == nullptr ? nullptr : memory->take(bytes, memory->device);
    if (own != nullptr) return {own, memory->give_back};
    return page_memory(bytes);
  }

  PageMemory held_{nullptr, nullptr};
  std::size_t capacity_ = 0;
};

}  // namespace shw
