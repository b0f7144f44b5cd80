// NCCL's transport in front of the double of its library, with memory of the host.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gpu/nccl_double/control.h"
#include "gpu/nccl_transport.h"

namespace shw::test {

// The double, loaded once as libnccl is, and what else it can be asked.
struct NcclDouble {
  NcclLibrary nccl;
  void (*counts)(NcclDoubleCounts*) = nullptr;
  int (*stream_idle)(void*) = nullptr;
  void (*fault)(const char*) = nullptr;
  void (*tolerate)(int) = nullptr;
  const char* (*violation)() = nullptr;
};
const NcclDouble& nccl_double();

// Memory of the host as a device has it.
std::unique_ptr<NcclStage> host_stage();
// Messages in pieces of 1,000 bytes; `patience` for the opening.
NcclOptions nccl_options(std::chrono::milliseconds patience = std::chrono::seconds(30));

// Workers that are threads, joined by NCCL; what became of each, by rank.
std::vector<Status> run_on_nccl(int workers, const NcclOptions& options,
                                const std::function<Status(Transport&)>& work);

}  // namespace shw::test
