#include "app/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

namespace shw::test {
namespace {

std::string in_temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "shardwright-test-XXXXXX").string();
  return mkdtemp(name.data()) == nullptr ? std::string() : name;
}

// Reads both pipes until both are closed, so that neither can fill up and block the child.
void drain(int out, int err, Run& run) {
  std::array<pollfd, 2> ends{pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends.data(), ends.size(), -1) < 0) return;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[4096];
      ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
      if (got <= 0) {
        ends[i].fd = -1;
      } else {
        (i == 0 ? run.out : run.err).append(buffer, static_cast<std::size_t>(got));
      }
    }
  }
}

[[noreturn]] void become(const std::vector<std::string>& words,
                         const std::vector<std::string>& environment) {
  for (const std::string& variable : environment) {
    std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

Run run_words(const std::vector<std::string>& words, const std::vector<std::string>& environment,
              std::optional<unsigned> kill_after = std::nullopt, bool waits = true) {
  Run run;
  int out[2], err[2];
  if (pipe(out) != 0 || pipe(err) != 0) return run;
  if (!waits) fcntl(out[1], F_SETFL, O_NONBLOCK);
  pid_t child = fork();
  if (child == 0) {
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (int end : {nothing, out[0], out[1], err[0], err[1]}) close(end);
    become(words, environment);
  }
  close(out[1]);
  close(err[1]);
  if (kill_after) {
    usleep(*kill_after);
    kill(child, SIGKILL);
  }
  if (!waits) usleep(300'000);  // until it is full
  drain(out[0], err[0], run);
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

}  // namespace

Run shardwright(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment) {
  std::vector<std::string> words{SHW_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, environment);
}

Run shardwright_killed(const std::vector<std::string>& arguments, unsigned microseconds) {
  std::vector<std::string> words{SHW_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, {}, microseconds);
}

Run shardwright_into_full_pipe(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{SHW_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_words(words, {}, std::nullopt, false);
}

Run shell(const std::string& command) {
  return run_words({"/bin/bash", "-c", command},
                   {std::string("SHARDWRIGHT=") + SHW_PROGRAM, "DEMO=" + demo()});
}

Scratch::Scratch() : path_(in_temporary_folder()) {}
Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

const std::string& demo() {
  static const std::string path = [] {
    if (const char* made = std::getenv("SHW_DEMO"); made != nullptr) return std::string(made);
    static const Scratch folder;
    std::string made = folder / "demo";
    shardwright({"demo", made, "--quiet"});
    return made;
  }();
  return path;
}

}  // namespace shw::test
