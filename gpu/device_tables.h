// The tables of a slab on the device: uploads them, launches each needed kernel once, and fetches
// the results.
#pragma once

#include "gpu/cuda_memory.h"
#include "gpu/kernels.h"

namespace shw {

class DeviceTables {
 public:
  // The host tables may be modified once the stream has executed past this upload.
  Status upload(const SlabTables& tables, cudaStream_t stream);
  Status launch(const std::byte* in, std::byte* out, cudaStream_t stream);
  // Starts the transfer of sums and counts to the host.
  Status fetch(cudaStream_t stream);
  // Call after the stream is done: returns the fingerprint and stores the numbers where the tables
  // say.
  Fingerprint sum() const;
  void add_numbers(const SlabTables& tables) const;

 private:
  struct Launch {
    Kernel kernel;
    std::size_t first;  // first item in the table
    std::uint32_t count;
  };
  std::vector<Launch> launches_;
  std::size_t jobs_ = 0;     // in bytes
  std::size_t sums_ = 0;     // number of scan items
  std::size_t numbers_ = 0;  // in bytes
  PinnedMemory staged_, staged_sums_, staged_numbers_;
  DeviceMemory tables_, device_sums_, device_numbers_;
};

}  // namespace shw
