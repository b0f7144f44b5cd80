// Byte transport between the ranks of a run: threads (loopback.h), processes (mpi.h), GPUs
// (gpu/nccl_transport.h). All forms behave alike; tests/core/cluster/conformance.h runs one suite
// against each of them.
//
// No call waits for ever. A rank whose wait times out, that learns of another rank's stop, or that
// receives a message of unexpected size gets an error with the rank, the step and the bytes. It has
// told all other ranks before the call returns, and must not use the transport again.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/worker_error.h"

namespace shw {

// The name of a step (used in timeout errors) and the timeout of its waits.
struct WaitStep {
  std::string name;
  std::chrono::milliseconds within{60'000};
};

// Messages with different tags are matched to receives independently.
enum class Tag : std::uint8_t { kSizes, kBytes };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  // of this process: 0 .. size() - 1
  virtual int size() const = 0;

  // send() and receive() only start the transfer. The buffer must stay valid, and a sent one
  // unchanged, until wait() returns. `peer` is another rank. Between two ranks messages of one tag
  // arrive in the order of their sends.
  virtual Status send(int peer, Tag tag, BytesView bytes) = 0;
  virtual Status receive(int peer, Tag tag, std::span<std::byte> bytes) = 0;
  // Blocks until all started transfers are complete.
  virtual Status wait(const WaitStep& step) = 0;
  // Advances the started transfers without blocking and detects ranks that stopped, for callers
  // that also wait for something else. Errors are those of wait().
  virtual Status poll(const WaitStep& step) = 0;
  // True if the receive into this buffer is still incomplete.
  virtual bool is_open(const std::byte* received) const = 0;

  // Notifies all other ranks that this rank stops, and why; their waits then fail at once.
  virtual void abort(const Error& why) = 0;
};

// Checks and errors that all transports share, so that their messages are equal.
Status check_peer(const Transport& transport, int peer);
// "in `exchange 3` worker 2 sent nothing for 60 s: 4096 bytes were to come from it"
Error peer_timeout_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender);
// A message of more or fewer bytes than both ranks agreed on.
Error wrong_size_error(const WaitStep& step, int peer, std::uint64_t agreed, bool is_more);
Error peer_lost_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender = true);
Error used_after_error();

}  // namespace shw
