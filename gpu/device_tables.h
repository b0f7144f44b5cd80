// The tables of a slab on the device, one launch of each kernel that they ask for, and what these
// add up.
#pragma once

#include "gpu/cuda_memory.h"
#include "gpu/kernels.h"

namespace shw {

class DeviceTables {
 public:
  // The tables may change once the stream has come by.
  Status upload(const SlabTables& tables, cudaStream_t stream);
  Status launch(const std::byte* in, std::byte* out, cudaStream_t stream);
  // What was added up and counted, on its way.
  Status fetch(cudaStream_t stream);
  // Once the stream has come by: the fingerprint; and the numbers, to where the tables say.
  Fingerprint sum() const;
  void add_numbers(const SlabTables& tables) const;

 private:
  struct Launch {
    Kernel kernel;
    std::size_t first;  // of its items, in the table
    std::uint32_t count;
  };
  std::vector<Launch> launches_;
  std::size_t jobs_ = 0;     // bytes
  std::size_t sums_ = 0;     // items of scans
  std::size_t numbers_ = 0;  // bytes
  PinnedMemory staged_, staged_sums_, staged_numbers_;
  DeviceMemory tables_, device_sums_, device_numbers_;
};

}  // namespace shw
