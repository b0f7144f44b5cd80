// Threads that the system may refuse: a limit on processes (a pids cgroup, `ulimit -u`) ends no
// run.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace shw {

// Starts a thread. False where the system lets this process start no more: `thread` stays empty.
bool start_thread(std::thread& thread, std::function<void()> body);

// How many of `wanted` threads the system lets this process run at once. They do nothing, and have
// ended when this returns.
std::size_t threads_that_start(std::size_t wanted);

// Runs `work` on a thread of its own; where none can be started, at once on this one.
template <class Work>
auto run_beside(Work work) {
  const auto call = [shared = std::make_shared<Work>(std::move(work))] { return (*shared)(); };
  // With both policies std::async defers where it cannot start a thread, and throws nothing. `call`
  // is copied: what is moved is gone by then.
  auto result = std::async(std::launch::async | std::launch::deferred, call);
  if (result.wait_for(std::chrono::seconds(0)) == std::future_status::deferred) result.wait();
  return result;
}

}  // namespace shw
