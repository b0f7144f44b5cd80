#include "core/io/remote/ssh_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/io/remote/remote_environment.h"

extern char** environ;

namespace shw {
namespace {

bool has_terminal() {
  const int fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

struct PipePair {
  int read = -1, write = -1;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  // A socket: a write to a child that has ended raises no SIGPIPE if it is told so.
  bool open_to_child() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close() const {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

// Restores default signal handling in ssh for the signals that this program ignores.
void set_default_signals(posix_spawnattr_t& attributes) {
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
}

struct ChildFiles {
  int in = STDIN_FILENO, out = STDOUT_FILENO, errors = STDERR_FILENO;
};

int spawn_with(const std::vector<std::string>& words, const ChildFiles& files, pid_t& pid) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, files.in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, files.out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, files.errors, STDERR_FILENO);
  set_default_signals(attributes);
  const int code =
      ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return code;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 255;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// True if exit_code_of() would return at once.
bool is_ended(pid_t pid) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         ended.si_pid != 0;
}

// Waits for the process. Passes one stop request on: by name to the pipe if there is one, else to
// the process.
int wait_and_pass_signal(pid_t pid, int pipe, const std::atomic<int>& signal) {
  constexpr int kShortestPause = 1, kLongestPause = 50;  // ms
  bool is_passed = false;
  for (int pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (is_ended(pid)) return exit_code_of(pid);
    const int asked = signal.load();
    if (asked != 0 && !is_passed) {
      is_passed = true;
      const std::string_view name = asked == SIGINT ? "INT\n" : "TERM\n";
      if (pipe < 0)
        ::kill(pid, asked);
      else if (!send_to_child(pipe, name))
        ::kill(pid, SIGTERM);
    }
    ::poll(nullptr, 0, pause);
  }
}

// Waits up to 2 s for the end of the process, which stays to be waited for.
bool wait_for_exit(pid_t pid) {
  constexpr int kPolls = 200;
  for (int i = 0; i < kPolls && !is_ended(pid); ++i) ::poll(nullptr, 0, 10);
  return is_ended(pid);
}

tl::unexpected<Error> cannot_start_error(const std::string& program, int code) {
  return fail(ErrorKind::kIo, "cannot start " + program + ": " + std::strerror(code), {},
              "Install the client of OpenSSH (Debian and Ubuntu: openssh-client).");
}

}  // namespace

std::vector<std::string> ssh_arguments(const RemotePlace& place,
                                       const std::vector<std::string>& options) {
  std::vector<std::string> words = split_at_spaces(environment_text("SHARDWRIGHT_SSH"));
  if (words.empty()) words = {"ssh"};
  words.insert(words.end(), {"-x", "-a"});
  if (!has_terminal()) words.insert(words.end(), {"-o", "BatchMode=yes"});
  words.insert(words.end(), {"-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"});
  if (!place.port.empty()) words.insert(words.end(), {"-p", place.port});
  if (!place.userinfo.empty()) words.insert(words.end(), {"-l", place.userinfo});
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", place.host});
  return words;
}

bool send_to_child(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string ssh_login_advice(const RemotePlace& place) {
  return "Try `ssh " + (place.port.empty() ? "" : "-p " + place.port + " ") +
         (place.userinfo.empty() ? "" : place.userinfo + "@") + place.host +
         " true`: it must work without a question.";
}

Result<SshProcess> SshProcess::start(const std::vector<std::string>& words, bool reads_errors) {
  PipePair to, from, errors;
  if (!to.open_to_child() || !from.open() || (reads_errors && !errors.open())) {
    const std::string why = std::strerror(errno);
    for (const PipePair& pipe : {to, from, errors}) pipe.close();
    return fail(ErrorKind::kIo, "cannot make a pipe: " + why);
  }
  pid_t pid = 0;
  const int code =
      spawn_with(words, {to.read, from.write, reads_errors ? errors.write : STDERR_FILENO}, pid);
  ::close(to.read);
  ::close(from.write);
  if (reads_errors) ::close(errors.write);
  if (code == 0) return SshProcess(pid, from.read, to.write, errors.read);
  ::close(to.write);
  ::close(from.read);
  if (reads_errors) ::close(errors.read);
  return cannot_start_error(words[0], code);
}

Result<int> run_ssh(std::vector<std::string> words, bool controls_stdin,
                    const std::atomic<int>& signal) {
  PipePair to;
  if (controls_stdin) {
    if (!to.open_to_child())
      return fail(ErrorKind::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
    // The terminal sends its Ctrl-C to ssh too, which must stay to carry the signal.
    words.insert(words.begin(), {"sh", "-c", "trap '' INT; exec \"$@\"", "sh"});
  }
  pid_t pid = 0;
  const int code = spawn_with(words, {controls_stdin ? to.read : STDIN_FILENO}, pid);
  if (to.read >= 0) ::close(std::exchange(to.read, -1));
  const int exit_code = code == 0 ? wait_and_pass_signal(pid, to.write, signal) : 0;
  to.close();
  if (code != 0) return cannot_start_error(words[0], code);
  return exit_code;
}

SshProcess::SshProcess(pid_t pid, int from, int to, int errors)
    : pid_(pid), from_(from), to_(to), errors_(errors), owner_(::getpid()) {}

bool SshProcess::is_own() const {
  return owner_ == ::getpid();
}

SshProcess::SshProcess(SshProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      from_(std::exchange(other.from_, -1)),
      to_(std::exchange(other.to_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      owner_(other.owner_) {}

SshProcess::~SshProcess() {
  if (!is_own()) {
    close_pipes();
    return;
  }
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    close_pipes();
    if (!wait_for_exit(pid_)) ::kill(pid_, SIGKILL);
  }
  finish();
}

void SshProcess::close_pipes() {
  for (int* fd : {&to_, &from_, &errors_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
}

int SshProcess::finish() {
  close_pipes();
  return pid_ <= 0 ? 0 : exit_code_of(std::exchange(pid_, 0));
}

}  // namespace shw
