// Layout of a safetensors file whose tensors change, made before writing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/shape.h"

namespace shw {

struct SafetensorsTensor {
  std::string dtype_text;  // empty: as in the file
  Extents shape;
  std::uint64_t length = 0;
};
struct SafetensorsChange {
  std::set<std::string> dropped;
  std::map<std::string, SafetensorsTensor> written;  // new, or replacing one of that name
  std::map<std::string, Extents> saved_offsets;      // new offsets of shards; others are kept
  std::string filled = {};             // kFilledAttribute for __metadata__; empty: unchanged
  bool removes_unowned_bytes = false;  // removes bytes that belong to no tensor
  bool empty() const {
    return dropped.empty() && written.empty() && saved_offsets.empty() && !removes_unowned_bytes;
  }
  bool moves_bytes() const {
    return !dropped.empty() || !written.empty() || !filled.empty() || removes_unowned_bytes;
  }
};

struct SafetensorsLayout {
  struct Copy {
    std::uint64_t offset = 0;  // in the new file
    std::uint64_t begin = 0;   // in the old file
    std::uint64_t length = 0;
  };
  Bytes header;  // including its length
  std::vector<Copy> copies;
  std::map<std::string, std::uint64_t> written;  // offsets of the written tensors
  std::uint64_t size = 0;
};

// Tensors that are not named keep their bytes, and `__metadata__` its entries. If no bytes move,
// the header keeps its length (padded with spaces) if the new text fits, and all data is one copy.
// Otherwise data starts at a multiple of 8 without gaps, larger elements first, as the reference
// implementation writes it. Sources with damaged headers are rejected.
Result<SafetensorsLayout> lay_out_safetensors(const ByteSource& source,
                                              const SafetensorsChange& change);

// Appends spaces to the header; false if it would exceed the limit of
// readers.
bool widen_safetensors_header(Bytes& header, std::uint64_t by);

}  // namespace shw
