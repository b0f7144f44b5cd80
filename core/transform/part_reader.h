// Reads elements of parts box by box in the simplest way. Proofs compare the engine's result with
// this, so it shares no code with lowering. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/formats/items/item_cursor.h"
#include "core/transform/target_state.h"

namespace shw {

class PartReader {
 public:
  // `decoded_bytes` limits all readers of inputs together (ItemCursor).
  explicit PartReader(const TargetState& all, std::uint64_t decoded_bytes = kDecodedForBoxes)
      : all_(all), decoded_bytes_(decoded_bytes) {}
  // Reads `box`, which is in the part's box: row-major, in the dtype after all casts. If
  // `out_of_range` is not null, it has a byte per element that becomes 1 if the dtype cannot
  // represent the number (is_out_of_range in core/tensor/convert.h). Reuses the memory of `to`.
  Status read(const Part& part, const Box& box, Bytes& to, std::uint8_t* out_of_range = nullptr);
  // The reader of an input's chunks.
  Result<ItemCursor*> reader(std::uint32_t input);
  // True if read() would return zeros because the file has a hole there.
  bool is_hole(const Part& part, const Box& box);

 private:
  static Box saved_box(const Part& part, const Box& box);
  // Returns strides per dim of the box, in bytes.
  Result<Extents> read_raw(const Part& part, const Box& box, Bytes& to);
  Status scale(const Scaling& scaling, const Part& part, const Box& box, Bytes& values,
               std::uint8_t* out_of_range);
  Result<const std::vector<float>*> factors(std::uint32_t number);

  const TargetState& all_;
  const std::uint64_t decoded_bytes_;
  std::vector<std::unique_ptr<ItemCursor>> readers_;
  std::map<std::uint32_t, std::vector<float>> factors_;
};

}  // namespace shw
