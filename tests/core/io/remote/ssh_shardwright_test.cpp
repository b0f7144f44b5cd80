// With a stand-in for ssh that runs the command on this machine.
#include "core/io/remote/ssh_shardwright.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

// A host whose shardwright is the given shell script.
class OtherHost {
 public:
  explicit OtherHost(const std::string& script) {
    put("ssh", "#!/bin/sh\nfor last; do :; done\nPATH=" + folder_.path() +
                   ":/usr/bin:/bin exec sh -c \"$last\"\n");
    put("shardwright", "#!/bin/sh\n" + script);
    ::setenv("SHARDWRIGHT_SSH", (folder_ / "ssh").c_str(), 1);
  }
  ~OtherHost() { ::unsetenv("SHARDWRIGHT_SSH"); }

  Result<RemoteAnswer> run(std::vector<std::string> words, Progress* progress = nullptr) const {
    return run_shardwright(words, place(), progress);
  }
  static RemotePlace place() { return *parse_remote("ssh://host/runs/step_1"); }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    ::chmod((folder_ / name).c_str(), 0755);
  }
  TemporaryFolder folder_;
};

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
  CHECK(has_shardwright(OtherHost::place()).value_or(false));
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
  CHECK(answer.error().message == "the connection of ssh has ended: Connection refused");
  CHECK_FALSE(has_shardwright(OtherHost::place()).has_value());
}
