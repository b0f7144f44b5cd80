// The tables of a slab on the device, and one launch of each kernel that they ask for.
#pragma once

#include "gpu/cuda_memory.h"
#include "gpu/kernels.h"

namespace shw {

class DeviceTables {
 public:
  // The tables may change once the stream has come by.
  Status upload(const SlabTables& tables, cudaStream_t stream);
  Status launch(const std::byte* in, std::byte* out, cudaStream_t stream);
  // What was added up, once the stream has come by: it waits for that.
  Result<Fingerprint> sum(cudaStream_t stream);

 private:
  struct Launch {
    Kernel kernel;
    std::size_t first;  // of its items, in the table
    std::uint32_t count;
  };
  std::vector<Launch> launches_;
  std::size_t jobs_ = 0;  // bytes
  std::size_t sums_ = 0;  // items of scans
  PinnedMemory staged_, staged_sums_;
  DeviceMemory tables_, device_sums_;
};

}  // namespace shw
