#include "core/base/parallel_batches.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/parallel.h"

using namespace shw;

TEST_CASE("each of many things in runs is done once, and of errors the lowest is reported") {
  std::mt19937 dice(3);
  for (std::size_t count : {0, 1, 2, 7, 5000}) {
    std::vector<std::uint64_t> costs(count);
    for (std::uint64_t& cost : costs) cost = dice() % 5 == 0 ? dice() % (4 << 20) : dice() % 4096;
    if (count > 3) costs[3] = UINT64_MAX;
    std::vector<std::atomic<int>> done(count);
    CHECK(parallel_for_batched(costs, [&](std::size_t i) -> Status {
            ++done[i];
            return {};
          }).has_value());
    for (const auto& one : done) CHECK(one == 1);
    Status failed = parallel_for_batched(costs, [&](std::size_t i) -> Status {
      return i < 5 ? Status{} : Status(fail(ErrorKind::kIo, std::to_string(i)));
    });
    CHECK(failed.has_value() == (count <= 5));
    if (!failed) CHECK(failed.error().message == "5");
  }
}

TEST_CASE("neighbours that cost little are one thread's, one after the other") {
  const std::vector<std::uint64_t> costs(100'000, 1000);
  std::mutex guard;
  std::vector<std::size_t> begun_by(costs.size());
  std::atomic<std::size_t> threads{0};
  Status all = parallel_for_batched(costs, [&](std::size_t i) -> Status {
    thread_local const std::size_t own = ++threads;
    std::lock_guard lock(guard);
    begun_by[i] = own;
    return {};
  });
  CHECK(all.has_value());
  std::size_t changes = 0;
  for (std::size_t i = 1; i < costs.size(); ++i) changes += begun_by[i] != begun_by[i - 1] ? 1 : 0;
  CHECK(changes <= costs.size() / 256);
}
