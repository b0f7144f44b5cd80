// A safetensors file with other tensors in it than before, laid out before it is written.
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
  std::string dtype_text;  // empty: the one that it has in the file
  Extents shape;
  std::uint64_t length = 0;
};
struct SafetensorsChange {
  std::set<std::string> dropped;
  std::map<std::string, SafetensorsTensor> written;  // in place of one of that name, or new
  std::map<std::string, Extents> saved_offsets;      // of shards; those not named keep theirs
  std::string filled = {};     // kFilledAttribute of the file's __metadata__; empty: stays as it is
  bool drops_unowned = false;  // bytes that belong to no tensor
  bool empty() const {
    return dropped.empty() && written.empty() && saved_offsets.empty() && !drops_unowned;
  }
  bool moves_bytes() const {
    return !dropped.empty() || !written.empty() || !filled.empty() || drops_unowned;
  }
};

struct SafetensorsLayout {
  struct Copy {
    std::uint64_t offset = 0;  // in the new file
    std::uint64_t begin = 0;   // in the old one
    std::uint64_t length = 0;
  };
  Bytes header;  // with its length before it
  std::vector<Copy> copies;
  std::map<std::string, std::uint64_t> written;  // where those tensors begin
  std::uint64_t size = 0;
};

// What is named nowhere keeps its bytes, `__metadata__` its entries. Where no bytes move, the
// header keeps its length if the new text fits (padded with spaces), and all data are one copy.
// Else the data begin at a multiple of 8 and follow each other without holes, wider elements first,
// as the reference implementation writes them; a source whose own header is damaged is refused.
Result<SafetensorsLayout> lay_out_safetensors(const ByteSource& source,
                                              const SafetensorsChange& change);

// The same header with that many more spaces behind it; false where it would be longer than readers
// take.
bool widen_safetensors_header(Bytes& header, std::uint64_t by);

}  // namespace shw
