// The header of a GGUF file (llama.cpp), versions 2 and 3, little-endian.
//
//   file    = "GGUF" version(u32) tensors(u64) pairs(u64) pair* tensor* padding data
//   pair    = text type(u32) value            value of type 9: type(u32) count(u64) value*
//   tensor  = text ndim(u32) extent(u64)* type(u32) offset(u64)
//   text    = length(u64) bytes
//
// Data begins at the next multiple of general.alignment (default 32), and offsets are relative to
// it. Extents are stored innermost first. llama.cpp requires that each tensor begins where the
// previous one ends, padded to the alignment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/gguf/gguf_types.h"
#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

inline constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"

struct GgufTensor {
  std::string name;
  Extents shape;  // outermost first, as in torch
  std::uint32_t type_id = 0;
  const GgufType* type = nullptr;       // null for an unknown type number
  std::uint64_t offset = 0;             // absolute in the file, as recorded: may be past its end
  std::uint64_t descriptor_offset = 0;  // offset of its description
  // Bytes; nullopt if the rows are not whole blocks or the type is unknown.
  std::optional<std::uint64_t> length = {};
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_begin = 0;
  std::vector<GgufTensor> tensors;
  std::vector<std::string> keys;             // keys of the pairs
  std::map<std::string, std::string> texts;  // "general.architecture", "general.type"
  // Values of "split.no", "split.count", "split.tensors.count" and other single integers.
  std::map<std::string, std::uint64_t> numbers;
  std::map<std::string, std::uint64_t> lengths;  // of arrays: "tokenizer.ggml.tokens"

  std::optional<std::uint64_t> number(const std::string& key) const;
  std::string text(const std::string& key) const;  // empty if missing
};

// kDamaged with file and byte if the header cannot be read completely.
Result<GgufHeader> read_gguf_header(const ByteSource& source, const Progress* progress);

}  // namespace shw
