// Runs the program as a process, as a shell or a CI job would.
#pragma once

#include <string>
#include <vector>

namespace shw::test {

struct Run {
  int code = -1;  // exit code; 128 + signal where one ended it
  std::string out, err;
};

// stdin is empty; stdout and stderr are no terminals. `environment`: "NAME=value", on top of ours.
Run shardwright(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment = {});
// The same, where what reads stdout set the pipe not to wait, and comes to it late.
Run shardwright_into_full_pipe(const std::vector<std::string>& arguments);
// The same, killed so many microseconds after it was begun, unless it has ended before.
Run shardwright_killed(const std::vector<std::string>& arguments, unsigned microseconds);
// The same through a shell: pipes and redirections. $SHARDWRIGHT is the program.
Run shell(const std::string& command);

// A folder of its own for one test, gone with it.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The demo, made once for all tests (by ctest, or by a process of its own), and not to be changed
// by any.
const std::string& demo();

}  // namespace shw::test
