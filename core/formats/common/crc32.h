// CRC-32 as zip has it (reflected 0xEDB88320), fast enough not to be what a data check waits for.
#pragma once

#include <cstdint>

#include "core/io/source.h"

namespace shw {

// The CRC of what came before (0 at the start) carried on over `bytes`.
std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc = 0);
// Carried on over `count` zero bytes, in time logarithmic in `count`: how a hole is checked.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count);
// The CRC of two parts put together, the second `second_length` bytes long.
std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_length);

// What bytes change in the CRC-32 of a payload of `length` zeros: runs come in any order, fastest
// from the front to the back. The change itself, to be xored into that CRC.
class CrcChange {
 public:
  explicit CrcChange(std::uint64_t length) : length_(length) {}
  // Run lies inside of the payload; no byte comes twice.
  void add(std::uint64_t at, BytesView run) { add(at, run.size(), crc32_of(run)); }
  // The same of a run whose CRC is known.
  void add(std::uint64_t at, std::uint64_t length, std::uint32_t crc);
  std::uint32_t value() const;

 private:
  std::uint64_t length_;
  std::uint32_t done_ = 0;           // of runs before the last leap backwards, at the payload's end
  std::uint32_t held_ = 0;           // of those since, at `end_`
  std::uint64_t end_ = 0;            // where the last run ended
  std::uint64_t leap_ = 0;           // from the end of one to the end of the next
  std::uint32_t leap_operator_ = 0;  // what carries a CRC over it
  std::uint64_t zeros_ = 0;          // a length, and
  std::uint32_t crc_of_zeros_ = 0;   // what as many zeros have
};

}  // namespace shw
