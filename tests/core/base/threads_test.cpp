#include "core/base/threads.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

using namespace shw;

namespace {

// Runs in a separate process of an unprivileged user who has reached the limit on processes.
int exit_code_without_threads(int (*body)()) {
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit one{1, 1};
    const bool is_limited =
        ::setrlimit(RLIMIT_NPROC, &one) == 0 && (::geteuid() != 0 || ::setuid(kNobody) == 0);
    ::_exit(is_limited ? body() : 99);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("threads: as many start as are asked for, and work next to this one is waited for") {
  CHECK(count_startable_threads(0) == 0);
  CHECK(count_startable_threads(3) == 3);
  std::atomic<int> done{0};
  auto work = run_on_own_thread([&] { return ++done; });
  CHECK(work.get() == 1);
  std::thread thread;
  REQUIRE(start_thread(thread, [&] { ++done; }));
  thread.join();
  CHECK(done == 2);
}

// TSan starts a thread when a process forks.
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("threads: where the system refuses them there are fewer, and work is done on this one") {
  CHECK(exit_code_without_threads([] {
          std::thread thread;
          if (start_thread(thread, [] {})) return 1;
          if (count_startable_threads(4) != 0) return 2;
          auto work = run_on_own_thread([] { return 7; });
          return work.wait_for(std::chrono::seconds(0)) == std::future_status::ready &&
                         work.get() == 7
                     ? 0
                     : 3;
        }) == 0);
}
#endif
