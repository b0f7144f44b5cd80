// Checksums of elements as they were read, by index in the tensor: the expected content of the
// result, and the number of elements that it cannot represent.
#pragma once

#include "core/program/tile_job.h"
#include "core/tensor/fingerprint.h"

namespace shw {

struct ElementSums {
  Fingerprint fingerprint{};
  // Number of elements that the target dtype cannot represent; the result holds an infinity, NaN or
  // the largest number instead.
  std::uint64_t out_of_range = 0;

  ElementSums& operator+=(const ElementSums& other) {
    fingerprint += other.fingerprint;
    out_of_range += other.out_of_range;
    return *this;
  }
  friend bool operator==(const ElementSums&, const ElementSums&) = default;
};

// Adds the elements of a job. `job.layouts` must be canonical: source strides in bytes relative to
// `in`, target strides in tensor elements. Each element counts with its converted value.
void add_elements(ElementSums& to, const std::byte* in, const TileJob& job);
inline void add_elements(Fingerprint& to, const std::byte* in, const TileJob& job) {
  ElementSums sums{to};
  add_elements(sums, in, job);
  to = sums.fingerprint;
}

}  // namespace shw
