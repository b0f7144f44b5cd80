// What carries bytes between the workers of a run: threads (loopback.h), processes (mpi.h),
// GPUs (gpu/nccl_transport.h). The forms differ in nothing that a caller could see;
// tests/core/cluster/conformance.h holds each of them against one suite.
//
// Nothing waits for ever. Whoever waits in vain, is told that another one stopped, or meets a
// message of another size than was agreed, gets an error that names the worker, the step and the
// bytes, has told all others before it returns, and can use the transport no more.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/worker_error.h"

namespace shw {

// What is going on, for whoever waits in vain, and how long one may be silent in it.
struct WaitStep {
  std::string name;
  std::chrono::milliseconds within{60'000};
};

// Messages of different tags do not overtake each other's receivers.
enum class Tag : std::uint8_t { kSizes, kBytes };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  // of this worker: 0 .. size() - 1
  virtual int size() const = 0;

  // Both only begin. The bytes stay where they are, and those of a send as they are, until wait()
  // has returned. `peer` is another worker. Between two workers messages of one tag arrive in the
  // order in which they were sent.
  virtual Status send(int peer, Tag tag, BytesView bytes) = 0;
  virtual Status receive(int peer, Tag tag, std::span<std::byte> bytes) = 0;
  // Until all that was begun is done.
  virtual Status wait(const WaitStep& step) = 0;
  // For whoever has something else to wait for as well: goes on with what was begun, without
  // waiting, and hears of others that stopped. An error is what it is of wait().
  virtual Status poll(const WaitStep& step) = 0;
  // Whether the bytes of a receive that was begun are still to come.
  virtual bool is_open(const std::byte* received) const = 0;

  // Tells all others that this worker stops, and why: what they wait for fails at once.
  virtual void abort(const Error& why) = 0;
};

// What the forms have to say in the same words.
Status check_peer(const Transport& transport, int peer);
// "in `exchange 3` worker 2 sent nothing for 60 s: 4096 bytes were to come from it"
Error silent_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender);
// More or fewer bytes than were agreed.
Error wrong_size_error(const WaitStep& step, int peer, std::uint64_t agreed, bool is_more);
Error gone_error(const WaitStep& step, int peer, std::uint64_t bytes, bool is_sender = true);
Error used_after_error();

}  // namespace shw
