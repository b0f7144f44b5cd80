// How workers that use NCCL do it.
#pragma once

#include <chrono>
#include <cstddef>

#include "core/cluster/transport.h"

namespace shw {

struct NcclOptions {
  // Longer messages travel in pieces of so many bytes. The same for all workers.
  std::size_t piece_bytes = std::size_t{32} << 20;
  // Of the GPU's memory, at once; one piece fits always.
  std::size_t most_staged = std::size_t{256} << 20;
  WaitStep opening{"opening NCCL", std::chrono::minutes(2)};
};

}  // namespace shw
