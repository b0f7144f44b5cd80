// Reports that fail: writing to special files, files for CI, and a limit on threads.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;
namespace fs = std::filesystem;

namespace {

const std::string kSound = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_moe_ep/ckpt";

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void copy_writable(const std::string& to) {
  fs::copy(kSound, to, fs::copy_options::recursive);
}

}  // namespace

TEST_CASE("a report: a pipe, /dev/null and /dev/stdout are written through") {
  Scratch scratch;
  Run run = shell("cd '" + (scratch / "") +
                  "' && mkfifo p && { wc -c < p > n & } && \"$SHARDWRIGHT\" "
                  "report '" +
                  kSound + "' --format html --out p --quiet && wait && test -p p && cat n");
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(std::atoi(run.out.substr(run.out.find('\n') + 1).c_str()) > 1000);
  CHECK(shardwright({"report", kSound, "--out", "/dev/null"}).code == 0);
  CHECK(fs::is_character_file("/dev/null"));
  Run piped =
      shell("\"$SHARDWRIGHT\" report '" + kSound + "' --format junit --out /dev/stdout | cat");
  CHECK(contains(piped.out, "</testsuites>"));
}

TEST_CASE(
    "a report for CI: a checkpoint that opens no more is reported in the form that is asked for") {
  Scratch scratch;
  copy_writable(scratch / "ckpt");
  const std::string xml = scratch / "r.xml", sarif = scratch / "r.sarif";
  REQUIRE(shardwright({"report", scratch / "ckpt", "--out", xml}).code == 0);
  REQUIRE(shardwright({"report", scratch / "ckpt", "--out", sarif}).code == 0);
  fs::resize_file(scratch / "ckpt/.metadata", 100);
  CHECK(shardwright({"report", scratch / "ckpt", "--out", xml}).code == 2);
  CHECK(shardwright({"report", scratch / "ckpt", "--out", sarif}).code == 2);
  CHECK(contains(read_all(xml), "errors=\"1\""));
  auto run = parsed(read_all(sarif))["runs"][0];
  CHECK(run["invocations"][0]["executionSuccessful"] == false);
  CHECK(contains(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"],
                 ".metadata"));
  for (const char* form : {"junit", "sarif", "github"}) {
    Run told = shardwright({"report", scratch / "ckpt", "--format", form});
    CHECK(told.code == 2);
    CHECK(contains(told.out, ".metadata"));
  }
  CHECK(contains(shardwright({"report", scratch / "ckpt", "--format", "github"}).out, "::error "));
  // Other existing files are not replaced, and neither are files in the checkpoint.
  std::ofstream(scratch / "other.xml") << "mine";
  CHECK(shardwright({"report", scratch / "ckpt", "--out", scratch / "other.xml"}).code == 2);
  CHECK(read_all(scratch / "other.xml") == "mine");
  CHECK(shardwright({"report", scratch / "ckpt", "--out", scratch / "ckpt/r.xml"}).code == 2);
  CHECK_FALSE(fs::exists(scratch / "ckpt/r.xml"));
  CHECK(shardwright({"report", scratch / "nowhere", "--out", xml}).code != 0);
  CHECK(contains(read_all(xml), "nowhere"));
}

TEST_CASE("a report: one that is stopped says so and leaves no half page") {
  Scratch scratch;
  const std::string page = scratch / "r.html";
  for (const char* after : {"0.01", "0.03", "0.06", "0.1", "0.2"}) {
    fs::remove(page);
    Run run = shell("\"$SHARDWRIGHT\" report \"$DEMO\"/step_* --data --quiet --out '" + page +
                    "' > /dev/null & p=$!; sleep " + after + "; kill -TERM $p; wait $p");
    CAPTURE(run.err);
    CHECK((run.code == 0 || run.code == 143));
    CHECK(fs::exists(page) == (run.code == 0));
    if (run.code == 0) CHECK(contains(read_all(page), "</html>"));
  }
}

TEST_CASE("a limit on threads: a check has fewer of them, and the same answer") {
  Run all = shardwright({"check", kSound, "--data", "--json"});
  REQUIRE(all.code == 0);
  // The limit is for users without privileges; where this one cannot be left nothing is tried.
  // The leak sanitizer needs a thread of its own.
  const std::string as_nobody =
      "env ASAN_OPTIONS=detect_leaks=0 setpriv --reuid=65534 --regid=65534 --clear-groups ";
  if (shell(as_nobody + "\"$SHARDWRIGHT\" info '" + kSound + "'").code != 0) return;
  for (const char* limit : {"1", "2", "4"}) {
    CAPTURE(limit);
    Run few = shell(as_nobody + "bash -c 'ulimit -u " + limit +
                    "; exec \"$SHARDWRIGHT\" check \"$0\" --data "
                    "--json' '" +
                    kSound + "'");
    CAPTURE(few.err);
    CHECK(few.code == 0);
    CHECK(parsed(few.out)["verdict"] == parsed(all.out)["verdict"]);
  }
}
