// Recorded data that cannot be read: chunks whose file is missing or ends before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// The reason why a chunk's bytes are missing; empty if they exist.
std::string_view missing_data_reason(const Checkpoint& checkpoint, ChunkId chunk);
std::uint64_t missing_chunk_count(const Checkpoint& checkpoint, TensorId tensor);
std::uint64_t missing_chunk_count(const Checkpoint& checkpoint);  // in all tensors

// True if the item is recorded in a file that is missing or ends before it.
bool is_in_missing_file(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item);

// Elements of one tensor in the chunks that a finding reports; saturates.
class LostElements {
 public:
  void add(const Checkpoint& checkpoint, ChunkId chunk);
  // Adds the count to `elements` and appends a line: "fc.weight: 8 of 32 elements".
  void write(const Checkpoint& checkpoint, TensorId tensor, std::int64_t& elements,
             std::vector<std::string>& lines) const;

 private:
  std::int64_t count_ = 0;
};

}  // namespace shw
