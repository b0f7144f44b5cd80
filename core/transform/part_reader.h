// The elements of parts, read box by box and in the plainest way: what the engine made is held
// against this, and it shares nothing with how that was lowered. For one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/transform/target_state.h"

namespace shw {

class PartReader {
 public:
  // `decoded_bytes`: of all readers of inputs together (BoxReader).
  explicit PartReader(const TargetState& all, std::uint64_t decoded_bytes = kDecodedForBoxes)
      : all_(all), decoded_bytes_(decoded_bytes) {}
  // Of `box`, which lies in the part's: row-major, of the dtype that the part ends in. Of
  // `out_of_range`, a byte an element, those become 1 whose number is lost on the way
  // (is_out_of_range in core/tensor/convert.h); null: nobody asks.
  // The memory that `to` holds is used again.
  Status read(const Part& part, const Box& box, Bytes& to, std::uint8_t* out_of_range = nullptr);
  // What reads chunks of that input.
  Result<BoxReader*> reader(std::uint32_t input);
  // read() would give nothing but zero bytes, since what it would read is a hole.
  bool is_hole(const Part& part, const Box& box);

 private:
  static Box saved_box(const Part& part, const Box& box);
  // Gives the strides by dim of the box, in bytes.
  Result<Extents> read_raw(const Part& part, const Box& box, Bytes& to);
  Status scale(const Scaling& scaling, const Part& part, const Box& box, Bytes& values,
               std::uint8_t* out_of_range);
  Result<const std::vector<float>*> factors(std::uint32_t number);

  const TargetState& all_;
  const std::uint64_t decoded_bytes_;
  std::vector<std::unique_ptr<BoxReader>> readers_;
  std::map<std::uint32_t, std::vector<float>> factors_;
};

}  // namespace shw
