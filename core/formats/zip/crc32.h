// CRC-32 of zip files (reflected 0xEDB88320), at memory speed.
#pragma once

#include <cstdint>

#include "core/io/source.h"

namespace shw {

// Continues the CRC of earlier bytes (0 at the start) over `bytes`.
std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc = 0);
// Continues over `count` zero bytes in O(log count), used for holes.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count);
// The CRC of two concatenated parts; the second has `second_length` bytes.
std::uint32_t combined_crc32(std::uint32_t first, std::uint32_t second,
                             std::uint64_t second_length);

// Accumulates how written bytes change the CRC-32 of `length` zeros. Runs may come in any order,
// fastest in ascending order. The result is to be xored into that CRC.
class CrcChange {
 public:
  explicit CrcChange(std::uint64_t length) : length_(length) {}
  // The run must be inside the payload; each byte may be added once.
  void add(std::uint64_t at, BytesView run) { add(at, run.size(), crc32_of(run)); }
  // Adds a run whose CRC is already known.
  void add(std::uint64_t at, std::uint64_t length, std::uint32_t crc);
  std::uint32_t value() const;

 private:
  std::uint64_t length_;
  std::uint32_t done_ = 0;          // by runs before the last backward jump, at the payload's end
  std::uint32_t held_ = 0;          // change by later runs, at `end_`
  std::uint64_t end_ = 0;           // end of the last run
  std::uint64_t run_distance_ = 0;  // distance between the ends of consecutive runs
  std::uint32_t run_distance_operator_ = 0;  // operator that moves a CRC over `run_distance_` bytes
  std::uint64_t zeros_ = 0;                  // cached length
  std::uint32_t crc_of_zeros_ = 0;           // CRC of so many zeros
};

}  // namespace shw
