// GGUF files built by hand, so that each part can be wrong on its own.
#pragma once

#include <string>
#include <vector>

#include "core/make_zip.h"

namespace shw::test {

inline std::string gguf_text(const std::string& text) {
  return little(text.size(), 8) + text;
}

struct GgufMade {
  std::string name;
  std::vector<std::uint64_t> extents;  // innermost first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

inline std::string gguf_number(const std::string& key, std::uint32_t value) {
  return gguf_text(key) + little(4, 4) + little(value, 4);
}

inline std::string gguf_header(const std::vector<GgufMade>& tensors,
                               const std::vector<std::string>& pairs = {}) {
  std::string out = "GGUF" + little(3, 4) + little(tensors.size(), 8) + little(pairs.size(), 8);
  for (const std::string& pair : pairs) out += pair;
  for (const GgufMade& tensor : tensors) {
    out += gguf_text(tensor.name) + little(tensor.extents.size(), 4);
    for (std::uint64_t extent : tensor.extents) out += little(extent, 8);
    out += little(tensor.type, 4) + little(tensor.offset, 8);
  }
  return out;
}

// Has data of so many bytes, from the next multiple of 32 on.
inline Bytes gguf_file(const std::vector<GgufMade>& tensors, std::size_t data,
                       const std::vector<std::string>& pairs = {}) {
  std::string out = gguf_header(tensors, pairs);
  out.resize((out.size() + 31) / 32 * 32 + data, '\1');
  return to_bytes(out);
}

}  // namespace shw::test
