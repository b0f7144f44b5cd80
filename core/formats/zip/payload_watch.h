// Observes a payload's bytes while another reader reads them.
#pragma once

#include <cstdint>

#include "core/tensor/float_counts.h"
#include "core/tensor/statistics_counter.h"

namespace shw {

struct PayloadObserver {
  std::uint64_t offset = 0, length = 0;  // of the payload, in the source
  FloatCounter counter;
  StatisticsCounter* numbers = nullptr;  // replaces `counter` for full statistics
  bool seen = false;                     // true once all bytes were observed

  void add(BytesView bytes) { numbers != nullptr ? numbers->add(bytes) : counter.add(bytes); }
  void add_zeros(std::uint64_t bytes) {
    numbers != nullptr ? numbers->add_zeros(bytes) : counter.add_zeros(bytes);
  }
};

}  // namespace shw
