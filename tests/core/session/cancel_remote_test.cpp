// Jobs that wait for another machine, with a stand-in for ssh.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/io/remote/other_host.h"
#include "core/session/session.h"

using namespace shw;

TEST_CASE("cancel: a job that waits for a silent host ends at once") {
  test::OtherHost host("exit 1\n");
  host.put("sftp", "#!/bin/sh\ntouch \"$(dirname \"$0\")/called\"\nexec cat > /dev/null\n");
  Session session;
  const auto began = std::chrono::steady_clock::now();
  session.apply(OpenCommand{"ssh://host/runs/step_1"});
  while (!std::filesystem::exists(host.path("called")))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  session.apply(CancelCommand{});
  session.wait();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
  REQUIRE(session.snapshot()->error.has_value());
  CHECK(session.snapshot()->error->kind == ErrorKind::kCancelled);
}
