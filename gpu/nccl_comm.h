// One communicator of NCCL and its life: begun, ready, given groups, closed or aborted. Nothing
// here waits but close(), which does not wait for ever: blocking communicators may hang inside a
// call.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "core/base/bytes.h"
#include "gpu/nccl_library.h"

namespace shw {

// Bytes to a peer or from it.
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
  // Nothing that was begun is under way in NCCL itself: before that no group may be given, and a
  // stream that looks idle has not got the last one yet.
  Result<bool> is_ready();
  // One group: all of it moves at once.
  Status post(std::span<const NcclMove> moves, NcclStream stream);
  // Finalised and destroyed; aborted where that takes longer.
  void close(std::chrono::milliseconds within);
  // Whatever it was doing; what it had on the stream ends as well.
  void abort();

 private:
  Error error(NcclCode code, const char* call) const;
  Status check(NcclCode code, const char* call) const;

  const NcclLibrary nccl_;
  NcclCommunicator* comm_ = nullptr;
};

}  // namespace shw
