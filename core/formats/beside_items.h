// What lies in the files of a checkpoint and in none of its items: headers, padding, whole files
// that no record names. Proofs that go item by item do not speak of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/formats/hash_ranges.h"
#include "core/model/checkpoint.h"

namespace shw {

class BesideItems {
 public:
  explicit BesideItems(const Checkpoint& checkpoint);
  // Of a file of that size, in order.
  std::vector<ByteRange> of(const std::string& path, std::uint64_t size) const;

 private:
  std::map<std::string, std::vector<ByteRange>> items_;  // by path; sorted by offset
};

}  // namespace shw
