// Progress of a long job, and the flags that cancel or pause it. One job writes it; any thread may
// read it.
#pragma once

#include <atomic>
#include <chrono>
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
  std::atomic<std::uint64_t> done{0};   // of the current phase, in items or bytes
  std::atomic<std::uint64_t> total{0};  // of the current phase; 0 while unknown
  std::atomic<bool> in_bytes{false};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> paused{false};
  // The job keeps finished work when it is cancelled, so that a later run can resume it.
  std::atomic<bool> keeps{false};
  StageUsages stages{};  // summed over all phases

  void begin(Phase next, std::uint64_t amount, bool bytes) {
    done = 0;
    total = amount;
    in_bytes = bytes;
    phase = next;
  }
  void add(std::uint64_t amount) { done.fetch_add(amount, std::memory_order_relaxed); }
  // Cancels the job; a paused job is resumed so that it can see the flag.
  void cancel() {
    cancelled = true;
    go_on();
  }
  void pause() {
    if (!cancelled) paused = true;
  }
  void go_on() {
    paused = false;
    paused.notify_all();
  }
};

// Blocks while the job is paused. The time is recorded, so that no stage is charged for it.
inline void wait_while_paused(const Progress& progress) {
  auto begun = std::chrono::steady_clock::now();
  while (progress.paused.load(std::memory_order_acquire)) progress.paused.wait(true);
  paused_time_this_thread += std::chrono::steady_clock::now() - begun;
}

// True if the job is cancelled; `progress` may be null. Called between two steps of a job; blocks
// while the job is paused. Locks held by the caller must belong to that job alone.
inline bool is_cancelled(const Progress* progress) {
  if (progress == nullptr) return false;
  if (progress->paused.load(std::memory_order_relaxed)) wait_while_paused(*progress);
  return progress->cancelled.load(std::memory_order_relaxed);
}
inline StageUsages* stages_of(Progress* progress) {
  return progress == nullptr ? nullptr : &progress->stages;
}
inline tl::unexpected<Error> cancelled_error() {
  return fail(ErrorKind::kCancelled, "stopped on request");
}

}  // namespace shw
