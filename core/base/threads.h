// Threads that the system may refuse: a limit on processes (a pids cgroup, `ulimit -u`) must not
// end a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace shw {

// Starts a thread. False if the system refuses another thread; then `thread` stays empty.
bool start_thread(std::thread& thread, std::function<void()> body);

// How many of `wanted` threads the system lets this process run at once. Starts that many idle
// threads; all have ended on return.
std::size_t count_startable_threads(std::size_t wanted);

// Runs `work` on a new thread, or on this thread if none can be started; returns its future.
template <class Work>
auto run_on_own_thread(Work work) {
  const auto call = [shared = std::make_shared<Work>(std::move(work))] { return (*shared)(); };
  // With both policies std::async defers instead of throwing if no thread starts. `call` is copied
  // because a moved argument would be lost after a failed start.
  auto result = std::async(std::launch::async | std::launch::deferred, call);
  if (result.wait_for(std::chrono::seconds(0)) == std::future_status::deferred) result.wait();
  return result;
}

}  // namespace shw
