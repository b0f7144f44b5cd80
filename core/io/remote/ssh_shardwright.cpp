#include "core/io/remote/ssh_shardwright.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/json.h"
#include "core/base/printable.h"
#include "core/base/progress_line.h"
#include "core/base/stop_requests.h"
#include "core/base/version.h"
#include "core/io/remote/ssh_process.h"

namespace shw {

// csh reads "!" in quotes, and fish the backslash.
std::string quoted_for_shell(std::string_view word) {
  std::string out = "'";
  for (char c : word) {
    if (c == '\'' || c == '!' || c == '\\')
      out += std::string("'\\") + c + "'";
    else
      out += c;
  }
  return out + "'";
}

namespace {

// ssh's own exit code for a failed connection.
constexpr int kSshFailed = 255;
// The findings of 100,000 tensors are 60 MB of JSON.
constexpr std::size_t kMaxOutput = std::size_t{256} << 20;
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxVersionText = std::size_t{64} << 10;
// A shell's exit codes for a command that it cannot run.
constexpr int kNotExecutable = 126, kNoSuchCommand = 127;
constexpr int kPollMilliseconds = 100;
constexpr int kLoginSeconds = 180;

// The login shell may be csh, which knows no "2>", or fish.
std::string sh_command_line(const std::string& script) {
  return "exec sh -c " + quoted_for_shell(script);
}

// The path on the remote machine: "/~/runs" is in the home folder, where ssh starts.
std::string path_on_remote(const RemotePlace& place) {
  if (place.path == "/~") return ".";
  return place.path.starts_with("/~/") ? "./" + place.path.substr(3) : place.path;
}

// Splits stderr into lines: progress goes to the job, the last other line is kept.
class ErrorLines {
 public:
  explicit ErrorLines(Progress* progress) : progress_(progress) {}
  void add(std::string_view text) {
    for (char c : text) {
      if (c == '\n' || c == '\r')
        end_line();
      else if (line_.size() < kMaxLine)
        line_ += c;
    }
  }
  std::string last() {
    end_line();
    return std::move(last_);
  }

 private:
  void end_line() {
    Progress ignored;
    Progress& progress = progress_ != nullptr ? *progress_ : ignored;
    if (!line_.empty() && !read_progress_line(line_, progress)) last_ = line_;
    line_.clear();
  }
  Progress* progress_;
  std::string line_, last_;
};

// Appends what is there; false at the end of the pipe.
template <class Add>
bool read_available(int fd, Add add) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count > 0) add(std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  return count > 0;
}

// Files of the shell over there may print a greeting before an answer.
std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

bool is_known_commit(std::string_view commit) {
  return !commit.empty() && commit != "unknown";
}
bool is_of_other_commit(const RemoteShardwright& found) {
  return is_known_commit(found.commit) && is_known_commit(kProgramCommit) &&
         found.commit != kProgramCommit;
}

tl::unexpected<Error> connection_lost_error(const RemotePlace& place, const std::string& message) {
  return fail(ErrorKind::kIo, "the ssh connection ended" + (message.empty() ? "" : ": " + message),
              {place.shown}, ssh_login_advice(place));
}

// All of stdout; stops with the job, and after the time in which a user types a password.
Result<std::string> read_output(const SshProcess& process, const RemotePlace& place) {
  const StopSignal stop;
  std::string out;
  for (int left = kLoginSeconds * 1000 / kPollMilliseconds; left > 0; --left) {
    if (stop.is_set()) return cancelled_error();
    pollfd wanted{process.from(), POLLIN, 0};
    if (::poll(&wanted, 1, kPollMilliseconds) <= 0) continue;
    const bool goes_on = read_available(process.from(), [&](std::string_view text) {
      if (out.size() < kMaxVersionText) out += text;
    });
    // A signal of the terminal ends ssh too.
    if (!goes_on && stop.is_set()) return cancelled_error();
    if (!goes_on) return out;
  }
  return connection_lost_error(place,
                               "the host was silent for " + std::to_string(kLoginSeconds) + " s");
}

}  // namespace

bool is_same_machine(const RemotePlace& a, const RemotePlace& b) {
  return a.kind == b.kind && a.host == b.host && a.userinfo == b.userinfo && a.port == b.port;
}

bool is_on_machine(const std::string& path, const RemotePlace& place) {
  if (!is_remote(path)) return false;
  auto other = parse_remote(path);
  return other && is_same_machine(*other, place);
}

Result<RemoteShardwright> find_shardwright(const RemotePlace& place) {
  std::vector<std::string> words = ssh_arguments(place, {"-n", "-T"});
  words.push_back(sh_command_line("shardwright --version --json 2>/dev/null"));
  SHW_TRY(SshProcess process, SshProcess::start(words));
  SHW_TRY(const std::string out, read_output(process, place));
  const int code = process.finish();
  if (code == kSshFailed)
    return fail(ErrorKind::kIo, "ssh cannot log in", {place.shown}, ssh_login_advice(place));
  RemoteShardwright found;
  found.is_installed = code != kNoSuchCommand && code != kNotExecutable;
  const auto json = parse_json<nlohmann::json>(last_line(out)).tree;
  if (code != 0 || !json.is_object()) return found;
  const auto text = [&](const char* key) {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  found.version = text("version");
  if (is_known_commit(text("commit"))) found.commit = text("commit");
  found.is_same = found.version == kProgramVersion && text("schema") == kJsonSchema &&
                  !is_of_other_commit(found);
  return found;
}

std::string version_mismatch_text(const RemoteShardwright& found) {
  if (!found.is_installed) return "is not installed on that machine";
  if (found.version == kProgramVersion && is_of_other_commit(found))
    return "on that machine is commit " + printable(found.commit) + ", but this one is commit " +
           kProgramCommit;
  const std::string that = found.version.empty() ? "another version"
                           : found.version == kProgramVersion
                               ? "another build"
                               : "version " + printable(found.version);
  return "over there is " + that + ", and this one is version " + kProgramVersion;
}

std::string with_signal_control(const std::string& command) {
  return sh_command_line(
      "exec 3<&0; " + command +
      " </dev/null 3<&- & job=$!; { while read -r signal; do kill -s \"$signal\" "
      "$job; done; kill -s TERM $job; kill -s CONT $job; } <&3 >/dev/null 2>&1 3<&- & "
      "control=$!; exec 3<&-; wait $job; code=$?; kill $control 2>/dev/null; "
      "exit $code");
}

std::string shardwright_command(std::span<const std::string> words, const RemotePlace& place) {
  std::string command = "shardwright";
  for (const std::string& word : words) {
    // "--spec=ssh://host/spec.json": the path is behind the sign.
    constexpr std::string_view kFrom = "from:";  // of --fill
    const std::size_t sign = word.starts_with("--") ? word.find('=') : word.npos;
    std::size_t at = sign == word.npos ? 0 : sign + 1;
    if (std::string_view(word).substr(at).starts_with(kFrom)) at += kFrom.size();
    const std::string path = word.substr(at);
    const bool is_there = is_on_machine(path, place);
    command += " " + quoted_for_shell(word.substr(0, at) +
                                      (is_there ? path_on_remote(*parse_remote(path)) : path));
  }
  return command;
}

Result<RemoteAnswer> run_shardwright(std::span<const std::string> words, const RemotePlace& place,
                                     Progress* progress) {
  std::vector<std::string> run = ssh_arguments(place, {"-T"});
  run.push_back(
      with_signal_control("env SHARDWRIGHT_PROGRESS=json " + shardwright_command(words, place)));
  SHW_TRY(SshProcess process, SshProcess::start(run, true));
  RemoteAnswer answer;
  ErrorLines errors(progress);
  bool is_paused = false;
  std::array<pollfd, 2> open{{{process.from(), POLLIN, 0}, {process.errors(), POLLIN, 0}}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (progress != nullptr && progress->cancelled) return cancelled_error();
    if (progress != nullptr && progress->paused != is_paused) {
      is_paused = !is_paused;
      send_to_child(process.to(), is_paused ? "STOP\n" : "CONT\n");
    }
    if (::poll(open.data(), open.size(), kPollMilliseconds) <= 0) continue;
    const auto add_out = [&](std::string_view text) { answer.out += text; };
    const auto add_error = [&](std::string_view text) { errors.add(text); };
    if (open[0].revents != 0 && !read_available(open[0].fd, add_out)) open[0].fd = -1;
    if (open[1].revents != 0 && !read_available(open[1].fd, add_error)) open[1].fd = -1;
    if (answer.out.size() > kMaxOutput)
      return fail(ErrorKind::kUnsupported, "the answer of that machine is over 256 MiB",
                  {place.shown});
  }
  answer.code = process.finish();
  answer.message = errors.last();
  if (answer.code == kSshFailed) return connection_lost_error(place, answer.message);
  return answer;
}

}  // namespace shw
