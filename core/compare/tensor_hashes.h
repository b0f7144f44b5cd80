// Tensors as they are told to somebody who is far away: two checkpoints of one model have the same
// hashes, whatever their tiles, files and formats, without one of them being copied to the other.
#pragma once

#include <string>
#include <vector>

#include "core/compare/fingerprints.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct TensorHash {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  Extents shape = {};
  Result<Fingerprint> fingerprint = {};  // of no elements: zero
};

struct HashedTensors {
  std::vector<TensorHash> tensors;
  std::vector<std::string> unread;  // files, records: what they hold nobody knows
  bool is_whole() const;            // nothing is open
};

// In the order of `tensors`, what fingerprints_of() says of each; and its errors.
Result<std::vector<TensorHash>> tensor_hashes(const Checkpoint& checkpoint,
                                              const std::vector<TensorId>& tensors,
                                              std::uint64_t memory, Progress* progress,
                                              Team* team = nullptr);

// One for all of them, whatever their order: XXH3-128 of the lines "FQN\0dtype\0[2, 3]\0hash\n",
// sorted as bytes. Empty where something is open.
std::string total_hash(const HashedTensors& hashed);

}  // namespace shw
