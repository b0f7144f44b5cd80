// The lifetime of one NCCL communicator: created, ready, used for groups, closed or
// aborted. Only close() waits, with a timeout, because calls on blocking communicators may
// hang.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "core/base/bytes.h"
#include "gpu/nccl_library.h"

namespace shw {

// One send or receive within a group.
struct NcclMove {
  int peer = 0;
  bool is_receive = false;
  std::byte* staged = nullptr;
  std::size_t bytes = 0;
};

class NcclComm {
 public:
  explicit NcclComm(const NcclLibrary& nccl) : nccl_(nccl) {}
  ~NcclComm() { abort(); }
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  Result<NcclUniqueId> unique_id() const;
  Status begin(const NcclUniqueId& id, int rank, int size);
  // True if NCCL has completed the previous asynchronous call. Before that no group may be posted,
  // and an idle stream does not mean that the last group is complete.
  Result<bool> is_ready();
  // Posts one group of sends and receives, which progress concurrently.
  Status post(std::span<const NcclMove> moves, NcclStream stream);
  // Finalises and destroys the communicator; aborts it after the timeout.
  void close(std::chrono::milliseconds within);
  // Ends the communicator and its work on the stream at once.
  void abort();

 private:
  Error error(NcclCode code, const char* call) const;
  Status check(NcclCode code, const char* call) const;

  const NcclLibrary nccl_;
  NcclCommunicator* comm_ = nullptr;
};

}  // namespace shw
