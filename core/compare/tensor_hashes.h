// Hashes for comparing checkpoints on different machines: equal tensors have equal hashes, whatever
// their tiles, files and formats.
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
  Result<Fingerprint> fingerprint = {};  // zero for tensors without elements
};

struct HashedTensors {
  std::vector<TensorHash> tensors;
  std::vector<std::string> unread;  // files and records of unknown contents
  bool is_whole() const;            // everything was hashed
};

// In the order of `tensors`; errors as in fingerprints_of().
Result<std::vector<TensorHash>> tensor_hashes(const Checkpoint& checkpoint,
                                              const std::vector<TensorId>& tensors,
                                              std::uint64_t memory, Progress* progress,
                                              Team* team = nullptr);

// One hash of all tensors, independent of order: XXH3-128 of the lines "FQN\0dtype\0[2,
// 3]\0hash\n", sorted bytewise. Empty if something was not hashed.
std::string total_hash(const HashedTensors& hashed);

}  // namespace shw
