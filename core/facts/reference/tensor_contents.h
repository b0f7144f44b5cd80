// Which tensors hold the same, whatever their names: fingerprints of whole tensors of one side.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// Each is read once, by one of those who look.
class TensorContents {
 public:
  TensorContents(const CheckInput& input, const Checkpoint& checkpoint)
      : input_(input), checkpoint_(checkpoint) {}
  // Reads those that are not known, on every core.
  Status learn(const std::vector<TensorId>& tensors);
  // Of one that was learned. Empty: it cannot be read.
  const std::string& of(TensorId tensor) const;

 private:
  std::string hash_of(TensorId tensor) const;

  const CheckInput& input_;
  const Checkpoint& checkpoint_;
  std::map<TensorId, std::string> known_ = {};
};

}  // namespace shw
