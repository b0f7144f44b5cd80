// Options of the NCCL transport.
#pragma once

#include <chrono>
#include <cstddef>

#include "core/cluster/transport.h"

namespace shw {

struct NcclOptions {
  // Longer messages are split into pieces of this size; equal on all ranks.
  std::size_t piece_bytes = std::size_t{32} << 20;
  // Limit of GPU memory for pieces in flight; one piece is always allowed.
  std::size_t most_staged = std::size_t{256} << 20;
  WaitStep opening{"opening NCCL", std::chrono::minutes(2)};
};

}  // namespace shw
