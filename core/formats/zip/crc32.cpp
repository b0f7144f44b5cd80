#include "core/formats/zip/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

#include "core/formats/zip/crc32_folded.h"

namespace shw {

// Short inputs use libdeflate; inputs from 1 KiB use vector folding if the processor has it.
std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc) {
  constexpr std::size_t kWorthFolding = 1024;
  if (bytes.size() >= kWorthFolding && can_fold_crc32()) return crc32_folded(bytes, crc);
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

// A zero byte multiplies the inverted register by x^8, which equals combining with an empty
// CRC.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count) {
  return ~combined_crc32(~crc, 0, count);
}

std::uint32_t combined_crc32(std::uint32_t first, std::uint32_t second,
                             std::uint64_t second_length) {
  // zlib takes a signed length: 2^62 per step exceeds any file.
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(second_length)));
}

// CRCs of equal length are linear: a run changes the CRC of zeros by a difference, which the
// following bytes propagate like a CRC with initial value 0.
void CrcChange::add(std::uint64_t at, std::uint64_t length, std::uint32_t crc) {
  if (length == 0) return;
  if (length != zeros_) {
    zeros_ = length;
    crc_of_zeros_ = crc32_of_zeros(0, zeros_);
  }
  if (at < end_) {
    done_ = value();
    held_ = 0;
    end_ = 0;
  }
  std::uint64_t leap = at + length - end_;
  if (leap != run_distance_) {
    run_distance_ = leap;
    run_distance_operator_ =
        static_cast<std::uint32_t>(::crc32_combine_gen(static_cast<z_off_t>(leap)));
  }
  held_ = static_cast<std::uint32_t>(
      ::crc32_combine_op(held_, crc ^ crc_of_zeros_, run_distance_operator_));
  end_ += leap;
}

std::uint32_t CrcChange::value() const {
  return done_ ^ combined_crc32(held_, 0, length_ - end_);
}

}  // namespace shw
