#include "app/cli/run_on_remote_host.h"

#include <fmt/core.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/progress.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/formats/open.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/ssh_process.h"
#include "core/io/remote/ssh_shardwright.h"
#include "core/io/store.h"

namespace shw::cli {
namespace {

// ssh's own exit code for a failed connection.
constexpr int kSshFailed = 255;
// Metadata above this size are read over there: with a round trip of 50 ms ssh carries 40 MB/s.
constexpr std::uint64_t kLargeMetadata = std::uint64_t{100} << 20;

bool changes_checkpoint(const std::string& verb) {
  constexpr std::array<std::string_view, 5> kChanging = {"repair", "reshard", "resume", "undo",
                                                         "commit"};
  return std::find(kChanging.begin(), kChanging.end(), verb) != kChanging.end();
}

bool reads_every_byte(const Options& options) {
  if (options.verb == "stats" || options.verb == "hash" || options.verb == "verify") return true;
  if (options.verb == "diff" && (options.absolute || options.relative)) return true;
  return (options.verb == "check" || options.verb == "diff") && options.depth == Depth::kData;
}

// True if the checkpoint is a folder on another machine whose .metadata is large.
bool has_large_metadata(Context& context) {
  auto opened = open_remote(context.options.checkpoint);
  if (!opened || !opened->file.empty()) return false;
  context.listed_place = opened->directory;
  const Entry metadata = opened->directory->stat(".metadata");
  return metadata.kind == EntryKind::kFile && metadata.size > kLargeMetadata;
}

// The first option or argument whose path is not on the remote machine; empty if all paths are.
std::string local_file_in(const Options& options, const RemotePlace& place) {
  const std::pair<const char*, const std::string*> paths[] = {
      {"--spec", &options.spec},
      {"--plan", &options.plan},
      {"--baseline", &options.baseline},
      {"--policy", &options.policy},
      {"--placements", &options.placements},
      {"--against", &options.against},
      {"--config", &options.mapping.config}};
  for (const auto& [option, path] : paths) {
    if (!path->empty() && !is_on_machine(*path, place)) return option;
  }
  if (options.fill.starts_with(kFillFrom) &&
      !is_on_machine(options.fill.substr(kFillFrom.size()), place))
    return "--fill";
  const std::string& map = options.mapping.map;  // a file, or the name of a map of the program
  if (!map.empty() && posix_store().exists(map)) return "--map";
  for (const std::string& path : options.inputs) {
    if (!is_on_machine(path, place)) return printable(path);
  }
  return {};
}

std::string remote_command_line(std::span<const std::string> words, const RemotePlace& place) {
  // Progress for a program that reads it comes back as it does from here.
  const char* progress = std::getenv("SHARDWRIGHT_PROGRESS");
  const bool as_json = progress != nullptr && std::string_view(progress) == "json";
  const std::string machine = place.shown.substr(0, place.shown.size() - place.path.size());
  return "env " + quoted_for_shell(std::string(kReachedAs) + "=" + machine) +
         (as_json ? " SHARDWRIGHT_PROGRESS=json " : " ") + shardwright_command(words, place);
}

// Asks the user first, because all bytes would be transferred. `why` it cannot run over there, and
// what would let it.
std::optional<int> confirm_transfer(Context& context, const std::string& why,
                                    const std::string& advice) {
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  std::uint64_t bytes = 0;
  for (const FileRow& file : (*checkpoint)->files()) bytes += file.referenced ? file.size : 0;
  const std::string what = why + ", so " + human_bytes(bytes) + " would travel here.";
  if (context.options.yes) {
    context.terminal.say(what);
    return std::nullopt;
  }
  if (context.terminal.interactive() && context.terminal.ask(what + " Go on?")) return std::nullopt;
  return fail_with(context, {ErrorKind::kUsage,
                             what,
                             {context.options.checkpoint},
                             "Repeat it with --yes, or " + advice});
}

// Runs the command of the user over there; returns its exit code.
int run_over_ssh(Context& context, const RemotePlace& place, std::span<const std::string> words) {
  const bool is_watched = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
  // Unless a terminal of its own is over there, the caller's stdin stays unread: it may be the list
  // of a shell's loop.
  std::vector<std::string> run = ssh_arguments(place, {is_watched ? "-t" : "-T"});
  const std::string command = remote_command_line(words, place);
  run.push_back(is_watched ? "exec " + command : with_signal_control(command));
  static const std::atomic<int> never{0};
  const std::atomic<int>& signal = context.stopped_by == nullptr ? never : *context.stopped_by;
  auto code = run_ssh(std::move(run), !is_watched, signal);
  if (!code) return fail_with(context, code.error());
  if (*code != kSshFailed) return *code;
  if (signal != 0) return fail_with(context, cancelled_error().value());
  return fail_with(
      context,
      {ErrorKind::kIo, "the connection of ssh has ended", {place.shown}, ssh_login_advice(place)});
}

}  // namespace

bool reads_only_metadata(const Options& options) {
  constexpr std::array<std::string_view, 6> kVerbs = {"info",  "ls",   "map",
                                                      "check", "plan", "report"};
  return options.depth != Depth::kData &&
         std::find(kVerbs.begin(), kVerbs.end(), options.verb) != kVerbs.end();
}

std::optional<int> run_on_remote_host_if_large(Context& context,
                                               std::span<const std::string> words) {
  const Options& options = context.options;
  const bool is_page = options.verb == "report";  // which would be written over there
  // A plan names the checkpoint that it fills from by a path of the machine that makes the plan.
  const bool fills_from = options.fill.starts_with(kFillFrom);
  if (words.empty() || !is_remote(options.checkpoint) || is_page || fills_from ||
      !reads_only_metadata(options))
    return std::nullopt;
  auto place = parse_remote(options.checkpoint);
  if (!place || place->kind != RemoteKind::kSsh || !local_file_in(options, *place).empty())
    return std::nullopt;
  if (!has_large_metadata(context)) return std::nullopt;
  auto found = find_shardwright(*place);
  if (!found || !found->is_same) return std::nullopt;
  return run_over_ssh(context, *place, words);
}

std::optional<int> run_on_remote_host(Context& context, std::span<const std::string> words) {
  const Options& options = context.options;
  const bool changes = changes_checkpoint(options.verb);
  if (!is_remote(options.checkpoint) || (!changes && !reads_every_byte(options)))
    return std::nullopt;
  auto place = parse_remote(options.checkpoint);
  if (!place) return fail_with(context, place.error());
  if (place->kind != RemoteKind::kSsh) return std::nullopt;
  if (const std::string local = local_file_in(options, *place); !local.empty()) {
    if (!changes)
      return confirm_transfer(context, local + " is not a file of that machine",
                              "copy it there and name it as ssh://HOST/PATH.");
    return fail_with(context,
                     {ErrorKind::kUsage,
                      "is changed on its own machine, where the files of this one are not",
                      {options.checkpoint},
                      "Copy what the options name there, and name it as ssh://HOST/PATH."});
  }
  auto found = find_shardwright(*place);
  if (!found) return fail_with(context, found.error());
  const std::string why = "shardwright " + version_mismatch_text(*found);
  const std::string install = found->is_installed
                                  ? fmt::format("install version {} of commit {} over there.",
                                                kProgramVersion, kProgramCommit)
                                  : "install shardwright over there.";
  if (!found->is_same && !changes) return confirm_transfer(context, why, install);
  if (!found->is_same)
    return fail_with(
        context,
        {ErrorKind::kUnsupported,
         "cannot be changed from here: " + why,
         {options.checkpoint},
         found->is_installed
             ? "Log in and run the verb over there, or " + install
             : "Install shardwright over there, or convert the checkpoint to this machine: "
               "shardwright convert " +
                   printable(options.checkpoint) + " --to dcp --out DIR"});
  return run_over_ssh(context, *place, words);
}

}  // namespace shw::cli
