// Byte ranges of files outside of all items: headers, padding, unreferenced files. Proofs per item
// do not cover them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/formats/items/hash_ranges.h"
#include "core/model/checkpoint.h"

namespace shw {

class NonItemBytes {
 public:
  explicit NonItemBytes(const Checkpoint& checkpoint);
  // The ranges of a file of this size, in order.
  std::vector<ByteRange> of(const std::string& path, std::uint64_t size) const;

 private:
  std::map<std::string, std::vector<ByteRange>> items_;  // by path; sorted by offset
};

}  // namespace shw
