// A value for another file together with the storages that it references.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/zip/zip.h"

namespace shw {

struct CarriedStorage {
  std::string file;  // file of its checkpoint; empty: `bytes` is the data
  std::uint64_t offset = 0, length = 0;
  Bytes bytes = {};
  std::uint32_t crc = 0;
};

struct CarriedValue {
  std::string opcodes;  // opcodes of a CarriedPickle
  std::vector<CarriedStorage> storages = {};
};

// The origin of a value: archive and parsed pickle. `zip` is null for a plain pickle, `file` is
// empty if the archive is not a file of the checkpoint.
struct CarriedFrom {
  const PickleTree& tree;
  BytesView pickle;
  std::uint64_t pickle_at = 0;
  const ZipReader* zip = nullptr;
  std::string file = {};
};

// Reads the storages and verifies their checksums. kDamaged if a tensor in the value is damaged,
// kUnsupported if a part of it cannot be copied.
Result<CarriedValue> carry_value(const CarriedFrom& from, NodeId value, std::size_t budget,
                                 Progress* progress);

}  // namespace shw
