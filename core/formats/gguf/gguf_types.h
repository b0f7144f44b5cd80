// The element types of GGUF (ggml's `ggml_type`): plain types, and blocks of a row that share
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
  std::uint32_t elements = 1;     // per block
  std::uint32_t bytes = 0;        // per block
  Dtype dtype = Dtype::kUnknown;  // of the decoded elements: float32 for blocks
  // Decodes one block; null for plain types.
  void (*decode)(const std::byte* block, float* elements) = nullptr;
  const Codec* codec = nullptr;

  bool is_plain() const { return elements == 1; }
};

// Null for an unknown or removed type number.
const GgufType* find_gguf_type(std::uint32_t id);

}  // namespace shw
