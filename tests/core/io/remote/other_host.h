// A stand-in for ssh that runs the command on this machine.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/io/remote/ssh_shardwright.h"
#include "core/temporary_folder.h"

namespace shw::test {

// A host whose shardwright is the given shell script.
class OtherHost {
 public:
  explicit OtherHost(const std::string& script) {
    set_shell("sh");
    put("shardwright", "#!/bin/sh\n" + script);
    ::setenv("SHARDWRIGHT_SSH", (folder_ / "ssh").c_str(), 1);
  }
  ~OtherHost() { ::unsetenv("SHARDWRIGHT_SSH"); }

  // The login shell over there.
  void set_shell(const std::string& shell) {
    put("ssh", "#!/bin/sh\nfor last; do :; done\nPATH=" + folder_.path() + ":/usr/bin:/bin exec " +
                   shell + " -c \"$last\"\n");
  }

  Result<RemoteAnswer> run(std::vector<std::string> words, Progress* progress = nullptr) const {
    return run_shardwright(words, place(), progress);
  }
  static RemotePlace place() { return *parse_remote("ssh://host/runs/step_1"); }
  std::string path(const std::string& name) const { return folder_ / name; }

  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    ::chmod((folder_ / name).c_str(), 0755);
  }

 private:
  TemporaryFolder folder_;
};

// A script that answers `shardwright --version --json`; an empty commit is not said.
inline std::string answer_of_version(const std::string& schema, const std::string& version,
                                     const std::string& commit = {}) {
  const std::string said = commit.empty() ? "" : "\", \"commit\": \"" + commit;
  return "echo '{\"schema\": \"" + schema + "\", \"version\": \"" + version + said + "\"}'\n";
}

}  // namespace shw::test
