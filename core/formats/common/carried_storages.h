// A value that is carried into another file, with the bytes of the storages that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/common/zip.h"

namespace shw {

struct CarriedStorage {
  std::string file;  // of the checkpoint it is from, as it lies there; empty: `bytes` are all of it
  std::uint64_t offset = 0, length = 0;
  Bytes bytes = {};
  std::uint32_t crc = 0;
};

struct CarriedValue {
  std::string opcodes;  // of a CarriedPickle
  std::vector<CarriedStorage> storages = {};
};

// Where a value stands: an archive and what its pickle says. `zip` is null where the pickle lies
// alone, `file` empty where the archive's source is no file of the checkpoint.
struct CarriedFrom {
  const PickleTree& tree;
  BytesView pickle;
  std::uint64_t pickle_at = 0;
  const ZipReader* zip = nullptr;
  std::string file = {};
};

// Reads the storages and holds them against their checksums. kDamaged: a tensor in it cannot be.
// kUnsupported: what is in the way, in words.
Result<CarriedValue> carry_value(const CarriedFrom& from, NodeId value, std::size_t budget,
                                 Progress* progress);

}  // namespace shw
