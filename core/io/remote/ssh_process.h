// The system's ssh as a child: the person's own config, keys, agent and jump hosts. Where ssh wants
// to know something it asks on the terminal; without a terminal it fails, and it never takes an
// unknown host key by itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// `ssh [options] -- HOST`, or what SHARDWRIGHT_SSH says in its place; without what is to be run.
// `options` stand before the host.
std::vector<std::string> ssh_words(const RemotePlace& place,
                                   const std::vector<std::string>& options);

// Runs it with this program's own stdin, stdout and stderr; its exit code.
Result<int> run_ssh(const std::vector<std::string>& words);

class SshProcess {
 public:
  // Both of its ends are pipes; what it says on stderr goes where ours goes.
  static Result<SshProcess> start(const std::vector<std::string>& words);
  SshProcess(SshProcess&& other) noexcept;
  SshProcess& operator=(SshProcess&&) = delete;
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;
  ~SshProcess();  // closes the pipes and waits

  int from() const { return from_; }
  int to() const { return to_; }
  // Nothing more is sent; its exit code when it has ended, 255 where ssh itself failed.
  int finish();

 private:
  SshProcess(pid_t pid, int from, int to) : pid_(pid), from_(from), to_(to) {}
  pid_t pid_;
  int from_, to_;
};

}  // namespace shw
