// Who asks for a stop: of the process (a signal, a C program's callback), or of the job of a
// thread.
#pragma once

#include <atomic>
#include <utility>

namespace shw {

// Number of times that a user or a signal has asked this process to stop. It is increased before
// Progress::cancelled is set, so that code that sets and clears that flag for its own reasons can
// detect a real stop request.
inline std::atomic<unsigned> stop_requests{0};

// The flag that cancels the job of this thread; null if it works for no job.
inline thread_local const std::atomic<bool>* job_cancelled = nullptr;

// Makes this thread work for a job. parallel_for() does it for its threads.
class JobScope {
 public:
  explicit JobScope(const std::atomic<bool>* cancelled)
      : before_(std::exchange(job_cancelled, cancelled)) {}
  ~JobScope() { job_cancelled = before_; }
  JobScope(const JobScope&) = delete;
  JobScope& operator=(const JobScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

// For a wait that takes long, such as that for a server: tells when to give it up.
class StopSignal {
 public:
  bool is_set() const {
    return stop_requests.load() != before_ || (job_ != nullptr && job_->load());
  }

 private:
  unsigned before_ = stop_requests.load();
  const std::atomic<bool>* job_ = job_cancelled;
};

}  // namespace shw
