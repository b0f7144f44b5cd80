// Runs the system's ssh as a child process, with the user's own config, keys, agent and jump hosts.
// ssh asks questions on the terminal; without a terminal it fails. It never accepts an unknown host
// key by itself.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/remote/remote_path.h"

namespace shw {

// True while only metadata are read: SFTP then runs over a compressed connection. A .metadata file
// shrinks to a seventeenth of its size. Elements hardly shrink, and would be slowed down.
inline std::atomic<bool> compresses_ssh{false};

// The command `ssh [options] -- HOST`, or SHARDWRIGHT_SSH in place of `ssh`, without a remote
// command.
std::vector<std::string> ssh_arguments(const RemotePlace& place,
                                       const std::vector<std::string>& options);

// "Try `ssh -p 2222 me@host true`: ...", the login that ssh_arguments() make.
std::string ssh_login_advice(const RemotePlace& place);

// Runs the command with this program's stdout and stderr; returns its exit code, 255 if ssh itself
// failed. `signal`: the one that has asked this program to stop, or 0. It is passed on: written to
// the stdin of the command if `controls_stdin`, which with_signal_control() reads, else to ssh,
// whose stdin is then this program's.
Result<int> run_ssh(std::vector<std::string> words, bool controls_stdin,
                    const std::atomic<int>& signal);

// Writes all of it to a child's stdin; false if the child has ended.
bool send_to_child(int socket, std::string_view text);

class SshProcess {
 public:
  // Connects pipes to the child's stdin and stdout, and to its stderr if `reads_errors`; else its
  // stderr is this program's.
  static Result<SshProcess> start(const std::vector<std::string>& words, bool reads_errors = false);
  SshProcess(SshProcess&& other) noexcept;
  SshProcess& operator=(SshProcess&&) = delete;
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;
  ~SshProcess();  // closes the pipes and waits

  // False in a process that was forked since: the child of its parent is not its own.
  bool is_own() const;
  int from() const { return from_; }
  int to() const { return to_; }
  int errors() const { return errors_; }  // -1 without `reads_errors`
  // Closes the child's stdin and waits; returns its exit code, 255 if ssh itself failed.
  int finish();

 private:
  SshProcess(pid_t pid, int from, int to, int errors);
  void close_pipes();
  pid_t pid_;
  int from_, to_, errors_;
  pid_t owner_;
};

}  // namespace shw
