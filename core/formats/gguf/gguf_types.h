// The element types of GGUF (ggml's `ggml_type`): plain ones, and blocks of a row that share
// scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/model/format.h"
#include "core/tensor/dtype.h"

namespace shw {

struct GgufType {
  std::uint32_t id = 0;
  std::string_view name = {};     // "Q4_K", as llama.cpp writes it
  std::uint32_t elements = 1;     // of a block
  std::uint32_t bytes = 0;        // of a block
  Dtype dtype = Dtype::kUnknown;  // of the elements as they are read: blocks are decoded to float32
  // One block to its elements; null for plain types, and for blocks that are not decoded.
  void (*decode)(const std::byte* block, float* elements) = nullptr;
  const Codec* codec = nullptr;

  bool is_plain() const { return elements == 1; }
};

// Null for a number that no type has, or no more.
const GgufType* find_gguf_type(std::uint32_t id);

}  // namespace shw
