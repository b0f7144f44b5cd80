// What a long job tells the one who waits, and how that one stops it. Written by one job, read by
// any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/result.h"
#include "core/base/stages.h"

namespace shw {

enum class Phase : std::uint8_t {
  kIdle,
  kOpening,
  kCheckingMetadata,
  kReadingHeaders,
  kReadingBytes,
  kPlanning,
  kCopying,
  kWritingMetadata,
  kVerifying,
  kReporting
};

struct Progress {
  std::atomic<Phase> phase{Phase::kIdle};
  std::atomic<std::uint64_t> done{0};   // of the current phase: items or bytes
  std::atomic<std::uint64_t> total{0};  // 0 while it is not known
  std::atomic<bool> in_bytes{false};
  std::atomic<bool> cancelled{false};
  // What is finished when it is cancelled stays, so that another run goes on with it.
  std::atomic<bool> keeps{false};
  StageWorks stages{};  // of all phases

  void begin(Phase next, std::uint64_t amount, bool bytes) {
    done = 0;
    total = amount;
    in_bytes = bytes;
    phase = next;
  }
  void add(std::uint64_t amount) { done.fetch_add(amount, std::memory_order_relaxed); }
  void cancel() { cancelled = true; }
};

// `progress` may be null everywhere: nobody is watching.
inline bool is_cancelled(const Progress* progress) {
  return progress != nullptr && progress->cancelled.load(std::memory_order_relaxed);
}
inline StageWorks* stages_of(Progress* progress) {
  return progress == nullptr ? nullptr : &progress->stages;
}
inline tl::unexpected<Error> cancelled_error() {
  return fail(ErrorKind::kCancelled, "stopped on request");
}

}  // namespace shw
