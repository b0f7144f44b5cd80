#include "core/base/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <thread>

using namespace shw;

TEST_CASE("everything is done once, and on more threads than one where there are") {
  for (std::size_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> done(count);
    CHECK(parallel_for(count, [&](std::size_t i) -> Status {
            ++done[i];
            return {};
          }).has_value());
    for (const auto& one : done) CHECK(one == 1);
  }
}

TEST_CASE("of several errors the lowest one is reported, and nothing is begun after it") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<std::size_t> begun{0};
    Status failed = parallel_for(100'000, [&](std::size_t i) -> Status {
      ++begun;
      if (i < 10) return {};
      return fail(ErrorKind::kIo, std::to_string(i));
    });
    REQUIRE_FALSE(failed.has_value());
    // Work is started in order, so an earlier item started earlier.
    CHECK(failed.error().message == "10");
    CHECK(begun < 10'000);
  }
}

TEST_CASE("ranges are all of it, each thing in one of them, whatever their length") {
  for (std::size_t count : {0, 1, 63, 64, 65, 1000}) {
    for (std::size_t length : {1, 7, 64, 2000}) {
      CAPTURE(count);
      CAPTURE(length);
      std::vector<int> times(count, 0);
      std::atomic<bool> longer{false};
      parallel_for_ranges(count, length, [&](std::size_t first, std::size_t last) {
        if (first >= last || last - first > length) longer = true;
        for (std::size_t i = first; i < last; ++i) ++times[i];
      });
      CHECK_FALSE(longer);
      CHECK(times == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("work may itself be done in parallel") {
  std::atomic<int> done{0};
  Status all = parallel_for(10, [&](std::size_t) {
    return parallel_for(10, [&](std::size_t) -> Status {
      ++done;
      return {};
    });
  });
  CHECK(all.has_value());
  CHECK(done == 100);
}

TEST_CASE("what is worked on at once holds no more than it may") {
  std::vector<std::uint64_t> held;
  for (std::uint64_t i = 0; i < 200; ++i) held.push_back(i % 50 == 7 ? 1000 : i % 40);
  std::atomic<std::uint64_t> now{0};
  std::atomic<int> done{0};
  Status all = parallel_for_with_memory_budget(100, held, [&](std::size_t i) -> Status {
    const std::uint64_t together = now += held[i];
    // A task above the limit runs alone; tasks without memory may run next to it.
    CHECK((together <= 100 || together == 1000));
    // A nested call must not start outer work that waits for room.
    SHW_CHECK(parallel_for(4, [](std::size_t) -> Status { return {}; }));
    now -= held[i];
    ++done;
    return {};
  });
  CHECK(all.has_value());
  CHECK(done == 200);
}

TEST_CASE("a thread gets from a pool what it had last, whatever others do meanwhile") {
  std::atomic<int> made{0}, exchanged{0};
  Pool<int> pool([&] {
    ++made;
    return std::make_unique<int>(0);
  });
  // On a machine with one core there is no concurrency to test.
  if (worker_count() < 2) return;
  std::barrier both(2);
  auto work = [&] {
    const int* first = nullptr;
    {
      auto held = pool.take();
      first = &*held;
      both.arrive_and_wait();
    }
    for (int i = 0; i < 10'000; ++i) exchanged += &*pool.take() == first ? 0 : 1;
  };
  std::thread one(work), other(work);
  one.join();
  other.join();
  CHECK(made == 2);
  CHECK(exchanged == 0);
}

TEST_CASE("a pool makes no more than are in use at once") {
  std::atomic<int> made{0};
  Pool<int> pool([&] {
    ++made;
    return std::make_unique<int>(0);
  });
  {
    auto first = pool.take(), second = pool.take();
    ++*first;
    CHECK(&*first != &*second);
  }
  for (int i = 0; i < 100; ++i) ++*pool.take();
  CHECK(made == 2);
}
