// How workers come to a communicator of NCCL that is ready and connected; and what is shared by all
// who wait for NCCL and for the others at once.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "gpu/nccl_comm.h"
#include "gpu/nccl_options.h"
#include "gpu/nccl_stage.h"

namespace shw {

// Between two looks: quick answers are met by looking again at once.
class Rests {
 public:
  void take() {
    if (++looked_ < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(looked_ < 1000 ? std::chrono::microseconds(50)
                                                 : std::chrono::microseconds(500));
  }

 private:
  int looked_ = 0;
};

// All workers call it. The caller tells the others of an error, and drops the communicator.
Status open_comm(NcclComm& comm, const NcclLibrary& nccl, NcclStage& stage, Transport& control,
                 const NcclOptions& options);

// Where NCCL has failed: what another worker says of it, if any does in a moment.
std::optional<Error> hearsay(Transport& control, const WaitStep& step);

}  // namespace shw
