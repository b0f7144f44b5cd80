// Which findings name a tensor or a file as a subject: indexed once per report, because a finding
// may name 100,000 tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

class FindingNames {
 public:
  FindingNames() = default;
  FindingNames(const Checkpoint& checkpoint, const std::vector<Finding>& findings);
  // Indices of findings, ascending.
  std::span<const std::uint32_t> of(TensorId tensor) const { return tensors_.of(index_of(tensor)); }
  std::span<const std::uint32_t> of(FileId file) const { return files_.of(index_of(file)); }
  bool names(TensorId tensor, std::size_t finding) const;
  // Indices of the findings that name the tensor or a file with one of its chunks, ascending.
  std::vector<std::uint32_t> about(const Checkpoint& checkpoint, TensorId tensor) const;

 private:
  struct Lists {
    std::vector<std::uint32_t> first, findings;  // first[i] to first[i + 1] are those of subject i
    std::span<const std::uint32_t> of(std::size_t subject) const;
    void build(std::size_t subjects, std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs);
  };
  Lists tensors_, files_;
};

}  // namespace shw
