// A safetensors file according to its layout, with zeros for computed tiles.
#pragma once

#include <algorithm>

#include "core/formats/safetensors/safetensors_rewrite.h"

namespace shw::test {

inline Result<Bytes> assembled(const ByteSource& source, const SafetensorsChange& change) {
  SHW_TRY(SafetensorsLayout layout, lay_out_safetensors(source, change));
  Bytes out(layout.size);
  std::copy(layout.header.begin(), layout.header.end(), out.begin());
  for (const SafetensorsLayout::Copy& copy : layout.copies) {
    SHW_TRY(Bytes part, read_bytes(source, copy.begin, copy.length));
    std::copy(part.begin(), part.end(), out.begin() + static_cast<std::ptrdiff_t>(copy.offset));
  }
  return out;
}

}  // namespace shw::test
