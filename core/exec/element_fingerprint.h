// What is known of elements as they were read, by their indices in the tensor: what the disk must
// hold of them afterwards, and how many of them it cannot.
#pragma once

#include "core/program/tile_job.h"
#include "core/tensor/fingerprint.h"

namespace shw {

struct ElementSums {
  Fingerprint fingerprint{};
  // Elements whose number is lost because what they are cast to cannot say it: what stands there is
  // an infinity, NaN or the largest number that it has.
  std::uint64_t out_of_range = 0;

  ElementSums& operator+=(const ElementSums& other) {
    fingerprint += other.fingerprint;
    out_of_range += other.out_of_range;
    return *this;
  }
  friend bool operator==(const ElementSums&, const ElementSums&) = default;
};

// `job.layouts` is canonical: where elements lie from `in` on, in bytes, and which ones of the
// tensor they are, in elements. Each counts as the job will write it.
void add_elements(ElementSums& to, const std::byte* in, const TileJob& job);
inline void add_elements(Fingerprint& to, const std::byte* in, const TileJob& job) {
  ElementSums sums{to};
  add_elements(sums, in, job);
  to = sums.fingerprint;
}

}  // namespace shw
