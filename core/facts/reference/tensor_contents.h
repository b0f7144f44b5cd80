// Fingerprints of whole tensors of one checkpoint, to find equal contents by any name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// A text of dtype and shape, equal for tensors of one form.
std::string dtype_and_shape_text(const Checkpoint& checkpoint, TensorId tensor);
// By tensor: its form and a hash of its first 4 KiB; empty if they cannot be read. `step` names the
// work for the ranks of a team, which share the reads.
Result<std::vector<std::string>> hash_leading_elements(const CheckInput& input,
                                                       const Checkpoint& checkpoint,
                                                       const std::vector<TensorId>& tensors,
                                                       const std::string& step);

// Each tensor is read once, by one rank of a team.
class TensorContents {
 public:
  TensorContents(const CheckInput& input, const Checkpoint& checkpoint)
      : input_(input), checkpoint_(checkpoint) {}
  // Reads all tensors that are not known yet, on all cores.
  Status learn(const std::vector<TensorId>& tensors);
  // Requires learn(). Empty: the tensor cannot be read.
  const std::string& of(TensorId tensor) const;

 private:
  std::string hash_of(TensorId tensor) const;

  const CheckInput& input_;
  const Checkpoint& checkpoint_;
  std::map<TensorId, std::string> known_ = {};
};

}  // namespace shw
