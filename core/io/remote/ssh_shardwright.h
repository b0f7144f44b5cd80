// Runs shardwright on the machine of an ssh:// checkpoint, if it is installed there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/remote/remote_path.h"

namespace shw {

bool is_same_machine(const RemotePlace& a, const RemotePlace& b);
// True if the path names a file on the machine of `place`.
bool is_on_machine(const std::string& path, const RemotePlace& place);

// The shardwright in the PATH of a remote machine.
struct RemoteShardwright {
  bool is_installed = false;
  std::string version = {};  // "0.1.0"; empty if it does not say one
  std::string commit = {};   // "9aadebc0834c"; empty if it does not say one
  // True for the version, the schema and the commit of this program: its verdicts are this
  // program's. A commit that either does not say is not compared.
  bool is_same = false;
};
// Logs in over ssh once and looks for shardwright there.
Result<RemoteShardwright> find_shardwright(const RemotePlace& place);
// Why the remote shardwright cannot be used: "is not installed over there", "over there is version
// 0.0.9, and this one is version 0.1.0".
std::string version_mismatch_text(const RemoteShardwright& found);

// One word for the login shell of another machine, whichever it is.
std::string quoted_for_shell(std::string_view word);
// "shardwright WORDS..." for the shell of that machine: paths of the machine become local ones.
std::string shardwright_command(std::span<const std::string> words, const RemotePlace& place);

// The command as a child over there that obeys signals named on ssh's stdin ("INT\n"), and ends
// with it: sshd does not end a command without a terminal when the connection is lost.
std::string with_signal_control(const std::string& command);

struct RemoteAnswer {
  int code = 0;
  std::string out;      // all of stdout
  std::string message;  // the last line of stderr that is not progress
};
// Runs it without a terminal; follows its progress, pauses and ends it with `progress`, which may
// be null. If this program dies, so does the run over there.
Result<RemoteAnswer> run_shardwright(std::span<const std::string> words, const RemotePlace& place,
                                     Progress* progress);

}  // namespace shw
