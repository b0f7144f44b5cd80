// SFTP with a stand-in for ssh that runs OpenSSH's own server on this machine.
#include "core/io/remote/sftp_files.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/stop_requests.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/other_host.h"

using namespace shw;
using shw::test::OtherHost;

namespace {

constexpr const char* kServer = "/usr/lib/openssh/sftp-server";

// A host with a folder of two files, whose server can be stopped.
struct SftpHost : OtherHost {
  SftpHost() : OtherHost("exit 1\n") {
    ::setenv("SHARDWRIGHT_REMOTE_TIMEOUT", "1", 1);
    put("sftp", std::string("#!/bin/sh\necho $$ >> ") + path("pids") + "\nexec " + kServer + "\n");
    ::mkdir(path("data").c_str(), 0755);
    put("data/a", "first file");
    put("data/b", "second file");
  }
  // A server that was stopped would hold this process's output open after its end.
  ~SftpHost() {
    for (const int server : servers()) ::kill(server, SIGKILL);
    ::unsetenv("SHARDWRIGHT_REMOTE_TIMEOUT");
  }

  std::string url() const { return "ssh://host" + path("data"); }
  std::vector<int> servers() const {
    std::ifstream file(path("pids"));
    std::vector<int> pids;
    for (int pid = 0; file >> pid;) pids.push_back(pid);
    return pids;
  }
  void signal_server(int signal) const { REQUIRE(::kill(servers().back(), signal) == 0); }
};

bool has_server() {
  return ::access(kServer, X_OK) == 0;
}

Result<std::string> text_of_file(const Directory& directory, const std::string& path) {
  SHW_TRY(const auto source, directory.open(path));
  SHW_TRY(const Bytes bytes, read_bytes(*source, 0, source->size()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

TEST_CASE("sftp: a lost or silent connection is made anew, by an open folder and by a new one" *
          doctest::skip(!has_server())) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    CAPTURE(signal);
    const SftpHost host;
    const auto opened = open_remote(host.url());
    REQUIRE(opened);
    CHECK(text_of_file(*opened->directory, "a") == "first file");
    host.signal_server(signal);
    CHECK(text_of_file(*opened->directory, "b") == "second file");
    CHECK(host.servers().size() == 2);
    host.signal_server(signal);
    forget_listings(host.url());
    const auto again = open_remote(host.url());
    REQUIRE(again);
    CHECK(again->directory != opened->directory);
    CHECK(text_of_file(*again->directory, "a") == "first file");
  }
}

TEST_CASE("sftp: a wait for the host ends with its job, and the connection stays usable" *
          doctest::skip(!has_server())) {
  const SftpHost host;
  ::setenv("SHARDWRIGHT_REMOTE_TIMEOUT", "60", 1);
  const auto opened = open_remote(host.url());
  REQUIRE(opened);
  host.signal_server(SIGSTOP);
  std::atomic<bool> cancelled{false};
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancelled = true;
  });
  {
    const JobScope works_for(&cancelled);
    const auto read = text_of_file(*opened->directory, "a");
    REQUIRE(!read);
    CHECK(read.error().kind == ErrorKind::kCancelled);
  }
  user.join();
  host.signal_server(SIGCONT);
  CHECK(text_of_file(*opened->directory, "a") == "first file");
  CHECK(text_of_file(*opened->directory, "b") == "second file");
  CHECK(host.servers().size() == 1);
}

TEST_CASE("sftp: a forked process logs in itself, and leaves the connection to its parent" *
          doctest::skip(!has_server())) {
  const SftpHost host;
  const auto opened = open_remote(host.url());
  REQUIRE(opened);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_read = text_of_file(*opened->directory, "a") == "first file";
    ::_exit(is_read && host.servers().size() == 2 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(text_of_file(*opened->directory, "b") == "second file");
  CHECK(host.servers().size() == 2);
}

TEST_CASE("open_remote: a folder that has changed is listed anew after forget_listings" *
          doctest::skip(!has_server())) {
  SftpHost host;
  const auto opened = open_remote(host.url());
  REQUIRE(opened);
  CHECK(open_remote(host.url())->directory == opened->directory);
  host.put("data/b", "another second file");
  host.put("data/c", "third file");
  forget_listings(host.url() + "-of-another-name");
  CHECK(open_remote(host.url())->directory == opened->directory);
  forget_listings(host.url() + "/b");
  const auto again = open_remote(host.url());
  REQUIRE(again);
  CHECK(text_of_file(*again->directory, "b") == "another second file");
  CHECK(text_of_file(*again->directory, "c") == "third file");
}
