// NCCL's transport on a simulated library, with host memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gpu/nccl_double/control.h"
#include "gpu/nccl_transport.h"

namespace shw::test {

// The double, loaded once like libnccl, and its additional functions.
struct NcclDouble {
  NcclLibrary nccl;
  void (*counts)(NcclDoubleCounts*) = nullptr;
  int (*stream_idle)(void*) = nullptr;
  void (*fault)(const char*) = nullptr;
  void (*tolerate)(int) = nullptr;
  const char* (*violation)() = nullptr;
};
const NcclDouble& nccl_double();

// Host memory in place of device memory.
std::unique_ptr<NcclStagingBuffer> host_stage();
// Messages in pieces of 1,000 bytes; `patience` for the opening.
NcclOptions nccl_options(std::chrono::milliseconds patience = std::chrono::seconds(30));

// Runs ranks as threads connected by NCCL; returns each rank's status.
std::vector<Status> run_on_nccl(int workers, const NcclOptions& options,
                                const std::function<Status(Transport&)>& work);

}  // namespace shw::test
