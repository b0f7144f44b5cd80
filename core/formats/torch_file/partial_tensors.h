// DTensors in a torch.save file: each is the part of one rank and records its global tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/torch_file_tensors.h"
#include "core/model/finding.h"

namespace shw {

struct PartialTensor {
  DTensorSharding sharding;
  Box box;                // in the global tensor
  bool is_placed = true;  // false: only its size is known
};

// A part without a box (not placed) if mesh and placements give none of that size, such as strided
// rows of tensor and data parallel ranks. nullopt if the tensor is not a part.
std::optional<PartialTensor> partial_tensor_of(DTensorSharding sharding, ExtentsView local);

// Collects the tensors of one file that are only parts.
class PartialTensors {
 public:
  void add(const std::string& fqn, const PartialTensor& part);
  std::optional<Finding> finding(const std::string& path) const;

 private:
  std::vector<std::string> subjects_;
  std::optional<PartialTensor> example_;
  std::int64_t held_ = 0, all_ = 0;  // elements
};

}  // namespace shw
