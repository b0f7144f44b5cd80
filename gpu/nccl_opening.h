// Opens a connected NCCL communicator on all ranks, and helpers for code that waits for NCCL and
// for other ranks at the same time.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "gpu/nccl_comm.h"
#include "gpu/nccl_options.h"
#include "gpu/nccl_stage.h"

namespace shw {

// Delay between polls: spins first for quick answers, then sleeps.
class PollBackoff {
 public:
  void pause() {
    if (++looked_ < 100)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(looked_ < 1000 ? std::chrono::microseconds(50)
                                                 : std::chrono::microseconds(500));
  }

 private:
  int looked_ = 0;
};

// Collective. On an error the caller informs the other ranks and drops the communicator.
Status open_nccl_communicator(NcclComm& comm, const NcclLibrary& nccl, NcclStagingBuffer& stage,
                              Transport& control, const NcclOptions& options);

// After an NCCL failure: the error that another rank reports within a short time, if any.
std::optional<Error> relayed_error(Transport& control, const WaitStep& step);

}  // namespace shw
