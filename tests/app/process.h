// Runs the program as a process, as a shell or a CI job would.
#pragma once

#include <string>
#include <vector>

namespace shw::test {

struct Run {
  int code = -1;  // exit code; 128 + signal if a signal ended it
  std::string out, err;
};

// stdin is empty; stdout and stderr are not terminals. `environment`: additional "NAME=value".
Run shardwright(const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment = {});
// Like shardwright(), with a stdout pipe that is non-blocking and read late.
Run shardwright_into_full_pipe(const std::vector<std::string>& arguments);
// The same, but killed after so many microseconds, unless it has ended by then.
Run shardwright_killed(const std::vector<std::string>& arguments, unsigned microseconds);
// Runs a shell command with pipes and redirections; $SHARDWRIGHT is the program.
Run shell(const std::string& command);

// A folder for one test, deleted with the object.
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

// The demo, made once for all tests (by ctest, or per process). Tests must not change it.
const std::string& demo();

}  // namespace shw::test
