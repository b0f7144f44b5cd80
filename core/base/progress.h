// What a long job tells the one who waits, and how that one stops it. Written by one job, read by
// any thread.
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
  std::atomic<std::uint64_t> done{0};   // of the current phase: items or bytes
  std::atomic<std::uint64_t> total{0};  // 0 while it is not known
  std::atomic<bool> in_bytes{false};
  std::atomic<bool> cancelled{false};
  std::atomic<bool> paused{false};
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
  // What is paused is let go on, so that it sees that it is to stop.
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

// The time that this thread has been held, so that no stage is charged with it.
inline void wait_while_paused(const Progress& progress) {
  auto begun = std::chrono::steady_clock::now();
  while (progress.paused.load(std::memory_order_acquire)) progress.paused.wait(true);
  held_on_this_thread += std::chrono::steady_clock::now() - begun;
}

// `progress` may be null everywhere: nobody is watching. Asked between two steps of a job, which is
// where one that is paused waits: a lock that is held here belongs to that job alone.
inline bool is_cancelled(const Progress* progress) {
  if (progress == nullptr) return false;
  if (progress->paused.load(std::memory_order_relaxed)) wait_while_paused(*progress);
  return progress->cancelled.load(std::memory_order_relaxed);
}
inline StageWorks* stages_of(Progress* progress) {
  return progress == nullptr ? nullptr : &progress->stages;
}
inline tl::unexpected<Error> cancelled_error() {
  return fail(ErrorKind::kCancelled, "stopped on request");
}

}  // namespace shw
