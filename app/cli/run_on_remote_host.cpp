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
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"
#include "core/io/remote/ssh_process.h"
#include "core/io/remote/ssh_shardwright.h"
#include "core/io/store.h"
#include "core/verbs/computed_path.h"

namespace shw::cli {
namespace {

// ssh's own exit code for a failed connection.
constexpr int kSshFailed = 255;
// Metadata above this size are read over there: with a round trip of 50 ms ssh carries 40 MB/s.
constexpr std::uint64_t kLargeMetadata = std::uint64_t{100} << 20;

bool is_one_of(const std::string& verb, std::span<const std::string_view> verbs) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

bool changes_checkpoint(const std::string& verb) {
  constexpr std::array<std::string_view, 5> kChanging = {"repair", "reshard", "resume", "undo",
                                                         "commit"};
  return is_one_of(verb, kChanging);
}

// Verbs that write a folder on this machine, and ask on their own before.
bool writes_folder_locally(const std::string& verb) {
  constexpr std::array<std::string_view, 6> kWriting = {"convert", "merge", "average",
                                                        "delta",   "apply", "extract"};
  return is_one_of(verb, kWriting);
}

bool reads_every_byte(const Options& options) {
  constexpr std::array<std::string_view, 4> kAlways = {"stats", "hash", "verify", "learn"};
  constexpr std::array<std::string_view, 5> kWithData = {"check", "diff", "plan", "report",
                                                         "export-hdf5"};
  if (is_one_of(options.verb, kAlways) || writes_folder_locally(options.verb)) return true;
  if (options.verb == "diff" && (options.absolute || options.relative)) return true;
  if (options.verb == "export-hdf5" && options.copy) return true;
  return options.depth == Depth::kData && is_one_of(options.verb, kWithData);
}

// True if the answer of the verb is the same from the machine of the checkpoint. A report is
// written there, and a plan names the checkpoint that it fills from by a path of its machine.
bool can_run_on_remote_host(const Options& options) {
  constexpr std::array<std::string_view, 5> kThere = {"stats", "hash", "verify", "check", "diff"};
  if (options.verb == "plan") return fill_source(options).empty();
  return is_one_of(options.verb, kThere) || changes_checkpoint(options.verb);
}

bool is_over_ssh(const std::string& path) {
  const auto place = is_remote(path) ? parse_remote(path) : Result<RemotePlace>(RemotePlace{});
  return place && place->kind == RemoteKind::kSsh;
}

// The checkpoints whose elements the verb reads over ssh if it runs here.
std::vector<std::string> checkpoints_over_ssh(const Options& options) {
  std::vector<std::string> paths = {options.checkpoint, options.against, fill_source(options)};
  paths.insert(paths.end(), options.inputs.begin(), options.inputs.end());
  std::erase_if(paths, [](const std::string& path) { return !is_over_ssh(path); });
  return paths;
}

// True if the checkpoint is a folder on another machine whose .metadata is large.
bool has_large_metadata(Context& context) {
  auto opened = open_remote(context.options.checkpoint);
  if (!opened || !opened->file.empty()) return false;
  context.listed_places.push_back(opened->directory);
  const Entry metadata = opened->directory->stat(".metadata");
  return metadata.kind == EntryKind::kFile && metadata.size > kLargeMetadata;
}

// The first option or argument whose path is not on the remote machine; empty if all paths are.
std::string local_file_in(Options options, const RemotePlace& place) {
  constexpr std::array<std::string_view, 2> kWritten = {"--out", "--upload"};
  for (const auto& [option, path] : path_options(options)) {
    if (path->empty() || is_on_machine(*path, place) || is_one_of(option, kWritten)) continue;
    // The name of a map of the program is no file.
    if (option == std::string_view("--map") && !posix_store().exists(*path)) continue;
    return *option == '\0' ? printable(*path) : option;
  }
  const std::string source = fill_source(options);
  return source.empty() || is_on_machine(source, place) ? std::string() : "--fill";
}

std::string remote_command_line(std::span<const std::string> words, const RemotePlace& place) {
  // Progress for a program that reads it comes back as it does from here.
  const char* progress = std::getenv("SHARDWRIGHT_PROGRESS");
  const bool as_json = progress != nullptr && std::string_view(progress) == "json";
  const std::string machine = place.shown.substr(0, place.shown.size() - place.path.size());
  return "env " + quoted_for_shell(std::string(kReachedAs) + "=" + machine) +
         (as_json ? " SHARDWRIGHT_PROGRESS=json " : " ") + shardwright_command(words, place);
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
      {ErrorKind::kIo, "the ssh connection ended", {place.shown}, ssh_login_advice(place)});
}

}  // namespace

bool reads_only_metadata(const Options& options) {
  constexpr std::array<std::string_view, 6> kVerbs = {"info",  "ls",   "map",
                                                      "check", "plan", "report"};
  return options.depth != Depth::kData && is_one_of(options.verb, kVerbs);
}

std::optional<int> run_on_remote_host_if_large(Context& context,
                                               std::span<const std::string> words) {
  const Options& options = context.options;
  const bool is_page = options.verb == "report";  // which would be written over there
  if (words.empty() || !is_over_ssh(options.checkpoint) || is_page ||
      !fill_source(options).empty() || !reads_only_metadata(options))
    return std::nullopt;
  auto place = parse_remote(options.checkpoint);
  if (!place || !local_file_in(options, *place).empty()) return std::nullopt;
  if (!has_large_metadata(context)) return std::nullopt;
  auto found = find_shardwright(*place);
  if (!found || !found->is_same) return std::nullopt;
  return run_over_ssh(context, *place, words);
}

namespace {

Error local_options_error(const Options& options) {
  return {ErrorKind::kUsage,
          "is changed on its own machine, which does not have the files of this one",
          {options.checkpoint},
          "Copy the files named in the options there, and give them as ssh://HOST/PATH."};
}

Error cannot_change_error(const Options& options, const RemoteShardwright& found,
                          const std::string& why, const std::string& install) {
  return {ErrorKind::kUnsupported,
          "cannot be changed from here: " + why,
          {options.checkpoint},
          found.is_installed ? "Log in and run the command there, or " + install
                             : "Install shardwright there, or convert the checkpoint to this "
                               "machine: shardwright convert " +
                                   printable(options.checkpoint) + " --to dcp --out DIR"};
}

}  // namespace

std::optional<int> run_on_remote_host(Context& context, std::span<const std::string> words) {
  const Options& options = context.options;
  const bool changes = changes_checkpoint(options.verb);
  if (!changes && !(reads_every_byte(options) && !checkpoints_over_ssh(options).empty()))
    return std::nullopt;
  if (!is_over_ssh(options.checkpoint) || !can_run_on_remote_host(options)) {
    if (!changes)
      context.transfer = {"`" + options.verb + "` runs on this machine",
                          "run it on the machine of the checkpoint."};
    return std::nullopt;
  }
  auto place = parse_remote(options.checkpoint);
  if (!place) return fail_with(context, place.error());
  if (const std::string local = local_file_in(options, *place); !local.empty()) {
    if (changes) return fail_with(context, local_options_error(options));
    context.transfer = {local + " is not a file on that machine",
                        "copy it there and give it as ssh://HOST/PATH."};
    return std::nullopt;
  }
  auto found = find_shardwright(*place);
  if (!found) return fail_with(context, found.error());
  if (found->is_same) return run_over_ssh(context, *place, words);
  const std::string why = "shardwright " + version_mismatch_text(*found);
  const std::string install = found->is_installed
                                  ? fmt::format("install version {} of commit {} on that machine.",
                                                kProgramVersion, kProgramCommit)
                                  : "install shardwright on that machine.";
  if (changes) return fail_with(context, cannot_change_error(options, *found, why, install));
  context.transfer = {why, install};
  return std::nullopt;
}

std::optional<int> confirm_transfer(Context& context) {
  const Options& options = context.options;
  if (context.transfer.why.empty()) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const std::string& path : checkpoints_over_ssh(options)) {
    ProgressLine line(context.terminal, context.progress);
    const auto checkpoint = verbs::open_requested(path, &context.progress);
    if (!checkpoint && writes_folder_locally(options.verb))
      return std::nullopt;  // an adapter, a delta
    if (!checkpoint) return fail_with(context, checkpoint.error());
    for (const FileRow& file : (*checkpoint)->files()) bytes += file.referenced ? file.size : 0;
    context.listed_places.push_back((*checkpoint)->directory());
  }
  const std::string what = context.transfer.why + ", so " + human_bytes(bytes) +
                           (writes_folder_locally(options.verb) ? " are transferred here."
                                                                : " would be transferred here.");
  if (options.yes || writes_folder_locally(options.verb)) {
    context.terminal.say(what);
    return std::nullopt;
  }
  if (context.terminal.interactive() && context.terminal.ask(what + " Go on?")) return std::nullopt;
  return fail_with(context, {ErrorKind::kUsage,
                             what,
                             {options.checkpoint},
                             "Run it again with --yes, or " + context.transfer.advice});
}

}  // namespace shw::cli
