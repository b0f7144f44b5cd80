#include "core/base/parallel.h"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/cores.h"
#include "core/base/stop_requests.h"
#include "core/base/threads.h"

namespace shw {

namespace {

std::atomic<std::size_t> processes_on_these_cores{1};
std::atomic<std::size_t> threads_asked_for{0};  // 0: not limited

// TBB aborts the program if the system refuses it a thread, so TBB gets a limit: all threads that
// can start now, minus a few for later (the progress line, a writer).
std::size_t limit_tbb_to_startable_threads(std::size_t wanted) {
  constexpr std::size_t kOthers = 4;
  if (wanted <= 1) return 1;
  const std::size_t started = count_startable_threads(wanted + kOthers);
  const std::size_t most = started > kOthers ? std::min(wanted, started - kOthers) : 1;
  static std::optional<tbb::global_control> limit;
  if (most < wanted) limit.emplace(tbb::global_control::max_allowed_parallelism, most);
  return most;
}

std::size_t max_concurrent_threads() {
  return static_cast<std::size_t>(std::max(tbb::this_task_arena::max_concurrency(), 1));
}

// Measured once per process: starting and ending 16 threads takes 0.5 ms.
std::size_t threads_for_all_cores() {
  static const std::size_t most = limit_tbb_to_startable_threads(max_concurrent_threads());
  return std::min(max_concurrent_threads(), most);
}

#ifdef __SANITIZE_THREAD__
// TBB's library is not compiled with TSan, which would report its hand-overs between threads as
// races. Under TSan plain threads are used.
void run_on_each_thread(std::size_t threads, const std::function<void()>& body) {
  std::vector<std::thread> others(std::max<std::size_t>(threads, 1) - 1);
  std::size_t started = 0;
  while (started < others.size() && start_thread(others[started], body)) ++started;
  if (threads > 0) body();
  for (std::size_t i = 0; i < started; ++i) others[i].join();
}

template <typename Work>
Status run_isolated_task(const Work& work) {
  return work();
}
#else
// The calling thread is one of the `threads`.
void run_on_each_thread(std::size_t threads, const std::function<void()>& body) {
  auto on_all = [&] {
    tbb::parallel_for(
        std::size_t{0}, threads, [&](std::size_t) { body(); }, tbb::simple_partitioner());
  };
  if (threads <= max_concurrent_threads()) return on_all();
  // TBB starts more threads than cores only in an explicit arena.
  tbb::task_arena(static_cast<int>(threads)).execute(on_all);
}

// Prevents TBB from running other tasks on this thread while `work` waits inside.
template <typename Work>
Status run_isolated_task(const Work& work) {
  return tbb::this_task_arena::isolate(work);
}
#endif

std::string cores_as_text(const std::vector<cpu_set_t>& sets) {
  const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
  std::string text;
  for (std::size_t i = 0; i < bytes * 8; ++i) {
    if (CPU_ISSET_S(i, bytes, sets.data())) text += (text.empty() ? "" : ",") + std::to_string(i);
  }
  return text;
}

}  // namespace

std::size_t worker_count() {
  if (threads_asked_for != 0) return threads_asked_for;
  return std::max<std::size_t>(threads_for_all_cores() / processes_on_these_cores, 1);
}

void limit_threads(std::size_t threads) {
  static std::optional<tbb::global_control> limit;
  limit.reset();
  threads_asked_for = threads == 0 ? 0 : limit_tbb_to_startable_threads(threads);
  // Must run before any TBB use: TBB has to know how many threads the system allows.
  if (threads == 0) threads_for_all_cores();
  // Also limits the parallel sorts and searches inside libraries.
  if (threads != 0)
    limit.emplace(tbb::global_control::max_allowed_parallelism, threads_asked_for.load());
}

std::string process_core_list() {
  // A cpu_set_t has room for 1,024 cores; the kernel refuses a set smaller than its own.
  constexpr std::size_t kMaxSets = 64;
  for (std::size_t count = 1; count <= kMaxSets; count *= 2) {
    std::vector<cpu_set_t> sets(count);
    const std::size_t bytes = count * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, sets.data()) == 0) return cores_as_text(sets);
    if (errno != EINVAL) break;
  }
  return {};
}

void divide_cores(std::size_t processes) {
  processes_on_these_cores = std::max<std::size_t>(processes, 1);
}

Status parallel_for(std::size_t count, const std::function<Status(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex guard;
  std::optional<Error> first;
  std::size_t first_index = count;
  const std::atomic<bool>* const job = job_cancelled;
  // One task per thread, each taking the next index: indices start in order whatever their cost.
  run_on_each_thread(std::min(worker_count(), count), [&] {
    const JobScope works_for(job);
    for (std::size_t i = next++; i < count && !stop; i = next++) {
      Status done = work(i);
      if (done) continue;
      std::lock_guard lock(guard);
      stop = true;
      if (i >= first_index) continue;
      first_index = i;
      first = std::move(done).error();
    }
  });
  if (first) return tl::unexpected<Error>(std::move(*first));
  return {};
}

void parallel_for_ranges(std::size_t count, std::size_t length,
                         const std::function<void(std::size_t first, std::size_t last)>& work) {
  const std::size_t ranges = count / length + (count % length == 0 ? 0 : 1);
  [[maybe_unused]] auto done = parallel_for(ranges, [&](std::size_t i) -> Status {
    work(i * length, std::min(count, (i + 1) * length));
    return {};
  });
  assert(done);
}

Status parallel_for_with_memory_budget(std::uint64_t most, std::span<const std::uint64_t> held,
                                       const std::function<Status(std::size_t)>& work) {
  std::mutex guard;
  std::condition_variable changed;
  std::uint64_t taken = 0;
  return parallel_for(held.size(), [&](std::size_t i) {
    {
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return taken == 0 || (taken <= most && held[i] <= most - taken); });
      taken += held[i];
    }
    // Another item run on this thread would wait for memory that this item holds.
    Status done = run_isolated_task([&] { return work(i); });
    {
      std::lock_guard lock(guard);
      taken -= held[i];
    }
    changed.notify_all();
    return done;
  });
}

}  // namespace shw
