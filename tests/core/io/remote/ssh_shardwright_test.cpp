// With a stand-in for ssh that runs the command on this machine.
#include "core/io/remote/ssh_shardwright.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/stop_requests.h"
#include "core/base/version.h"
#include "core/io/remote/other_host.h"
#include "core/io/remote/ssh_process.h"

using namespace shw;
using shw::test::OtherHost;
namespace fs = std::filesystem;

namespace {

bool appears(const std::string& path) {
  for (int i = 0; i < 100; ++i) {
    if (fs::exists(path)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace

TEST_CASE("run_shardwright: stdout, exit code and progress come back, paths become local ones") {
  const OtherHost host(
      "for word; do echo \"<$word>\"; done\n"
      "echo '{\"progress\": {\"phase\": \"Reading bytes\", \"done\": 7, \"total\": 9, \"unit\": "
      "\"bytes\"}}' >&2\n"
      "echo 'said at the end' >&2\nexit 1\n");
  Progress progress;
  auto answer = host.run({"check", "ssh://host/runs/a b", "it's", "ssh://other/x"}, &progress);
  REQUIRE(answer.has_value());
  CHECK(answer->code == 1);
  CHECK(answer->out == "<check>\n</runs/a b>\n<it's>\n<ssh://other/x>\n");
  CHECK(answer->message == "said at the end");
  CHECK(progress.phase == Phase::kReadingBytes);
  CHECK(progress.done == 7);
  CHECK(progress.total == 9);
}

TEST_CASE("run_shardwright: an answer of many megabytes next to much stderr arrives whole") {
  const OtherHost host("head -c 5000000 /dev/zero | tr '\\0' x\nhead -c 5000000 /dev/zero >&2\n");
  auto answer = host.run({"hash"});
  REQUIRE(answer.has_value());
  CHECK(answer->out.size() == 5'000'000);
}

TEST_CASE("run_shardwright: a job that is stopped ends over there") {
  const OtherHost host(
      "trap 'touch \"$1.ended\"; exit 9' TERM\ntouch \"$1.began\"\n"
      "while :; do sleep 0.1; done\n");
  Progress progress;
  std::thread stopper([&] {
    CHECK(appears(host.path("job.began")));
    progress.cancel();
  });
  auto answer = host.run({host.path("job")}, &progress);
  stopper.join();
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().kind == ErrorKind::kCancelled);
  CHECK(appears(host.path("job.ended")));
}

TEST_CASE("run_shardwright: a job that is paused stands still over there") {
  const OtherHost host(
      "i=0\nwhile [ $i -lt 30 ]; do i=$((i + 1)); echo $i > \"$1\"; sleep 0.1; "
      "done\n");
  const std::string file = host.path("job");
  const auto count = [&] {
    int i = 0;
    std::ifstream(file) >> i;
    return i;
  };
  Progress progress;
  std::thread person([&] {
    CHECK(appears(file));
    progress.pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    const int paused_at = count();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    CHECK(count() == paused_at);
    progress.go_on();
  });
  auto answer = host.run({file}, &progress);
  person.join();
  REQUIRE(answer.has_value());
  CHECK(answer->code == 0);
  CHECK(count() == 30);
}

TEST_CASE("run_shardwright: a lost connection is an error with ssh's own words") {
  const OtherHost broken("");
  std::ofstream(broken.path("ssh")) << "#!/bin/sh\necho 'Connection refused' >&2\nexit 255\n";
  auto answer = broken.run({"check"});
  REQUIRE_FALSE(answer.has_value());
  CHECK(answer.error().kind == ErrorKind::kIo);
  CHECK(answer.error().message == "the ssh connection ended: Connection refused");
  CHECK_FALSE(find_shardwright(OtherHost::place()).has_value());
}

TEST_CASE("shardwright_command: paths behind an option's sign become local ones") {
  const std::vector<std::string> words = {"check",
                                          "ssh://host/x",
                                          "--spec=ssh://host/a b.json",
                                          "--against=ssh://other/x",
                                          "--mesh=dp=2",
                                          "--spec=ssh://host/a=b",
                                          "from:ssh://host/ref",
                                          "--fill=from:ssh://host/ref",
                                          "from:ssh://other/ref"};
  CHECK(shardwright_command(words, OtherHost::place()) ==
        "shardwright 'check' '/x' '--spec=/a b.json' '--against=ssh://other/x' '--mesh=dp=2' "
        "'--spec=/a=b' 'from:/ref' '--fill=from:/ref' 'from:ssh://other/ref'");
}

TEST_CASE("run_shardwright: each login shell reads a word as it was written") {
  OtherHost host("for word; do echo \"<$word>\"; done\n");
  for (const char* shell : {"sh", "bash", "csh", "fish", "zsh"}) {
    CAPTURE(shell);
    if (!fs::exists(std::string("/usr/bin/") + shell) && !fs::exists(std::string("/bin/") + shell))
      continue;
    host.set_shell(shell);
    auto answer = host.run({"check", "ssh://host/runs/a b", "it's", "a!b", "c\\d", "$e", "`f`"});
    REQUIRE(answer.has_value());
    CHECK(answer->out == "<check>\n</runs/a b>\n<it's>\n<a!b>\n<c\\d>\n<$e>\n<`f`>\n");
    CHECK(find_shardwright(OtherHost::place()).has_value());
  }
}

TEST_CASE("find_shardwright: a wait for a host ends with its job") {
  OtherHost host("exec cat > /dev/null\n");
  std::atomic<bool> cancelled{true};
  const JobScope works_for(&cancelled);
  const auto found = find_shardwright(OtherHost::place());
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("ssh_login_advice: names the login that was tried") {
  CHECK(ssh_login_advice(*parse_remote("ssh://me@host:2222/x")) ==
        "Try `ssh -p 2222 me@host true`: it must work without a question.");
  CHECK(ssh_login_advice(OtherHost::place()) ==
        "Try `ssh host true`: it must work without a question.");
}

TEST_CASE("find_shardwright: one of another version or schema is not this program") {
  const auto found = [](const std::string& script) {
    const OtherHost host(script);
    auto there = find_shardwright(OtherHost::place());
    REQUIRE(there.has_value());
    return *there;
  };
  const std::string schema(kJsonSchema), version = kProgramVersion;
  RemoteShardwright there = found("echo Welcome\n" + test::answer_of_version(schema, version));
  CHECK(there.is_installed);
  CHECK(there.is_same);
  CHECK(there.version == version);
  there = found(test::answer_of_version(schema, "0.0.1"));
  CHECK(there.is_installed);
  CHECK_FALSE(there.is_same);
  CHECK(version_mismatch_text(there) ==
        "over there is version 0.0.1, and this one is version " + version);
  CHECK_FALSE(found(test::answer_of_version("shardwright/1", version)).is_same);
  CHECK_FALSE(found("echo shardwright 0.1.0\n").is_same);
  CHECK_FALSE(found("exit 3\n").is_same);
  CHECK_FALSE(found("exit 127\n").is_installed);
  CHECK(version_mismatch_text(found("exit 127\n")) == "is not installed on that machine");
}
