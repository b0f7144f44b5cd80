// Memory that is used again and again: what it held stays in it, and nothing is cleared or touched
// before somebody writes there.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/page_memory.h"

namespace shw {

// Where a slab's bytes come from, where any memory will not do. `take` may answer null: then any
// memory has to do. Who takes it may be on any thread.
struct SlabMemory {
  std::byte* (*take)(std::size_t bytes, int device);
  void (*give_back)(std::byte* bytes);
  int device = 0;
};

class Slab {
 public:
  // Room for that many bytes; what was in it may be gone. `memory`: null for any.
  std::span<std::byte> room(std::size_t bytes, const SlabMemory* memory = nullptr) {
    if (bytes > capacity_) {
      held_.reset();  // never both at once
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
