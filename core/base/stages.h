// Time per pipeline stage (read, decode, write ...) over all threads while a checkpoint is written,
// so that a user sees what a run waits for.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shw {

enum class Stage : std::uint8_t { kRead, kMake, kWrite, kReadBack };
inline constexpr std::size_t kStages = 4;

constexpr std::string_view name(Stage stage) {
  constexpr std::string_view kNames[kStages] = {"read", "make", "write", "read_back"};
  return kNames[static_cast<std::size_t>(stage)];
}

// Thread-seconds: a stage that keeps two threads busy for one second took two.
struct StageUsage {
  std::atomic<std::uint64_t> bytes{0}, nanoseconds{0};
};
using StageUsages = std::array<StageUsage, kStages>;

// Time that this thread has waited because its job was paused.
inline thread_local std::chrono::steady_clock::duration paused_time_this_thread{};

// Charges the time between construction and destruction to one stage; null `works` disables it.
class StageClock {
 public:
  StageClock(StageUsages* works, Stage stage, std::uint64_t bytes) : works_(works) {
    if (works_ == nullptr) return;
    work_ = &(*works_)[static_cast<std::size_t>(stage)];
    work_->bytes.fetch_add(bytes, std::memory_order_relaxed);
    begun_ = std::chrono::steady_clock::now() - paused_time_this_thread;
  }
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;
  ~StageClock() {
    if (works_ == nullptr) return;
    auto spent = std::chrono::steady_clock::now() - paused_time_this_thread - begun_;
    work_->nanoseconds.fetch_add(
        static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()),
        std::memory_order_relaxed);
  }

 private:
  StageUsages* works_;
  StageUsage* work_ = nullptr;
  std::chrono::steady_clock::time_point begun_{};
};

// The stage with the most thread time; kRead if no stage has any.
inline Stage longest(const StageUsages& works) {
  std::size_t longest = 0;
  for (std::size_t i = 1; i < kStages; ++i) {
    if (works[i].nanoseconds > works[longest].nanoseconds) longest = i;
  }
  return static_cast<Stage>(longest);
}

}  // namespace shw
