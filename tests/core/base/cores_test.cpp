#include "core/base/cores.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/parallel.h"

using namespace shw;

TEST_CASE("Processes that use the same cores share the threads, and each has one at least") {
  const std::size_t alone = worker_count();
  CHECK_FALSE(process_core_list().empty());
  CHECK(process_core_list() == process_core_list());
  divide_cores(2);
  CHECK(worker_count() == (alone < 4 ? 1 : alone / 2));
  divide_cores(100'000);
  CHECK(worker_count() == 1);
  divide_cores(0);
  CHECK(worker_count() == alone);
  divide_cores(1);
  CHECK(worker_count() == alone);
}

TEST_CASE("As many threads work as were asked for, be there fewer cores or more of them") {
  const std::size_t alone = worker_count();
  for (std::size_t wanted : {std::size_t{1}, std::size_t{3}, 2 * alone + 1}) {
    CAPTURE(wanted);
    limit_threads(wanted);
    CHECK(worker_count() == wanted);
    // Each waits until all are there, or until it is clear that they will not be.
    std::atomic<std::size_t> at_work{0}, most{0};
    Status done = parallel_for(2 * wanted, [&](std::size_t) -> Status {
      const std::size_t now = ++at_work;
      std::size_t before = most;
      while (before < now && !most.compare_exchange_weak(before, now)) {
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (most < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      --at_work;
      return {};
    });
    CHECK(done);
    CHECK(most == wanted);
  }
  limit_threads(0);
  CHECK(worker_count() == alone);
}

TEST_CASE("Who asks for threads gets them next to other processes of the run too") {
  const std::size_t alone = worker_count();
  divide_cores(100'000);
  limit_threads(2);
  CHECK(worker_count() == 2);
  limit_threads(0);
  CHECK(worker_count() == 1);
  divide_cores(1);
  CHECK(worker_count() == alone);
}
