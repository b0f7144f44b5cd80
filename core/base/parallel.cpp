#include "core/base/parallel.h"

#include <sched.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <string>

#include "core/base/cores.h"

namespace shw {

namespace {

std::atomic<std::size_t> processes_on_these_cores{1};

}  // namespace

std::size_t worker_count() {
  const auto cores = static_cast<std::size_t>(std::max(tbb::this_task_arena::max_concurrency(), 1));
  return std::max<std::size_t>(cores / processes_on_these_cores, 1);
}

std::string own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  std::string told;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return told;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &cores)) told += (told.empty() ? "" : ",") + std::to_string(i);
  }
  return told;
}

void share_cores(std::size_t processes) {
  processes_on_these_cores = std::max<std::size_t>(processes, 1);
}

Status each_in_parallel(std::size_t count, const std::function<Status(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex guard;
  std::optional<Error> first;
  std::size_t first_index = count;
  // One task a thread, each taking what is next: parts are begun in order, whatever they cost.
  tbb::parallel_for(
      std::size_t{0}, std::min(worker_count(), count),
      [&](std::size_t) {
        for (std::size_t i = next++; i < count && !stop; i = next++) {
          Status done = work(i);
          if (done) continue;
          std::lock_guard lock(guard);
          stop = true;
          if (i >= first_index) continue;
          first_index = i;
          first = std::move(done).error();
        }
      },
      tbb::simple_partitioner());
  if (first) return tl::unexpected<Error>(std::move(*first));
  return {};
}

Status each_within(std::uint64_t most, std::span<const std::uint64_t> held,
                   const std::function<Status(std::size_t)>& work) {
  std::mutex guard;
  std::condition_variable changed;
  std::uint64_t taken = 0;
  return each_in_parallel(held.size(), [&](std::size_t i) {
    {
      std::unique_lock lock(guard);
      changed.wait(lock, [&] { return taken == 0 || (taken <= most && held[i] <= most - taken); });
      taken += held[i];
    }
    // A thread that waits inside of `work` must not take up another thing: it would wait for room
    // that it holds itself.
    Status done = tbb::this_task_arena::isolate([&] { return work(i); });
    {
      std::lock_guard lock(guard);
      taken -= held[i];
    }
    changed.notify_all();
    return done;
  });
}

}  // namespace shw
