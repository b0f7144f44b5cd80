// The command line program: parses arguments, runs a verb, returns its exit code.
#include <fmt/core.h>

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include "app/cli/computed_checkpoint.h"
#include "app/cli/final_errors.h"
#include "app/cli/options.h"
#include "app/cli/processes.h"
#include "app/cli/run_on_remote_host.h"
#include "app/cli/started_by.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/base/cores.h"
#include "core/base/encoder.h"
#include "core/base/stop_requests.h"
#include "core/base/version.h"
#include "core/base/words.h"
#include "core/cluster/launch.h"
#include "core/cluster/mpi.h"
#include "core/cluster/transport_team.h"
#include "core/io/owner.h"
#include "core/io/remote/remote_traffic.h"
#include "core/io/remote/ssh_process.h"
#include "core/report/report.h"
#include "core/report/text_words.h"
#include "core/verbs/run/newest_step.h"

namespace shw::cli {
namespace {

struct Verb {
  const char* name;
  int (*run)(Context&);
  bool supports_several_processes = false;  // started by mpirun or srun as one of several
  int (*fail)(Context&, const Error&) = fail_with;
};

constexpr Verb kHandlers[] = {
    {"info", run_info},
    {"ls", run_list},
    {"show", run_show},
    {"map", run_map},
    {"check", run_check, true},
    {"plan", run_plan},
    {"repair", run_repair, true},
    {"verify", run_verify, true},
    {"undo", run_undo},
    {"resume", run_resume, true},
    {"commit", run_commit},
    {"report", run_report, false, fail_report},
    {"explain", run_explain},
    {"demo", run_demo},
    {"gui", run_gui},
    {"stats", run_stats, true},
    {"hash", run_hash, true},
    {"reshard", run_reshard, true},
    {"convert", run_convert, true},
    {"merge", run_combine, true},
    {"average", run_combine, true},
    {"delta", run_combine, true},
    {"apply", run_combine, true},
    {"extract", run_combine, true},
    {"export-hdf5", run_export_hdf5},
    {"diff", run_diff},
    {"learn", run_learn},
    {"upload", run_upload},
};

Progress run_progress;  // static, because the signal handler accesses it

// Further signals within this time count as the same request: timeout(1) signals both the process
// and its group, some microseconds apart.
constexpr std::int64_t kSameRequestMs = 250;
std::atomic<std::int64_t> first_signal_ms{0};
std::atomic<int> first_signal{0};

std::int64_t monotonic_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// for runs of several processes
std::atomic<bool> is_first_process{true};
std::atomic<pid_t> first_process{0};        // pid of rank 0 if it is on this machine
std::atomic<bool> first_was_killed{false};  // before the launcher stopped all others
std::atomic<bool> is_next_to_first{false};
std::atomic<const std::string*> resume_text{
    nullptr};  // advice for resuming, printed by the handler
std::atomic<bool> left_was_said{false};

// True if an unfinished folder exists that another run can resume.
bool has_unfinished_folder() {
  const Phase phase = run_progress.phase.load();
  return phase == Phase::kCopying || phase == Phase::kWritingMetadata || phase == Phase::kVerifying;
}

void print_stopping() {
  static constexpr std::string_view kStopping = "\nstopping; press again to stop immediately\n";
  const std::string* left = resume_text.load();
  const bool stays = left != nullptr && has_unfinished_folder();
  left_was_said.store(stays);
  const std::string_view words = stays ? std::string_view(*left) : kStopping;
  [[maybe_unused]] auto ignored = ::write(STDERR_FILENO, words.data(), words.size());
}

// The first signal cancels the job cleanly, the second ends the program at once.
void cancel_on_signal(int signal) {
  const int error = errno;  // of the interrupted code
  std::int64_t first = 0;
  const std::int64_t now = monotonic_ms();
  if (!first_signal_ms.compare_exchange_strong(first, now)) {
    if (now - first < kSameRequestMs) return;
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // takes effect when this handler returns
    return;
  }
  first_signal.store(signal);
  // Keeps finished files after a cancellation; the error names the command that resumes.
  run_progress.keeps.store(true, std::memory_order_relaxed);
  stop_requests.fetch_add(1);
  run_progress.cancelled.store(true);
  const pid_t of_first = first_process.load();
  if (of_first != 0 && ::kill(of_first, 0) != 0) first_was_killed.store(true);
  const bool is_to_tell = is_next_to_first.load() && first_was_killed.load();
  if (is_first_process.load() || is_to_tell) print_stopping();
  errno = error;
}
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "the handler stores to them");

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = cancel_on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Ignored SIGHUP stays ignored, as nohup(1) sets it.
  struct sigaction hang_up {};
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  // A closed pipe is an error of write(2) and must not end a repair.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  // Ignores the signal for a file beyond `ulimit -f` too.
  sigaction(SIGXFSZ, &ignore, nullptr);
}

// Resolves "newest step" paths before anything is opened.
Status resolve_newest_steps(Context& context, Options& options) {
  SHW_TRY(auto settled, verbs::resolve_newest_steps(options, &context.progress, context.team));
  for (std::string& input : options.inputs) {
    if (!combines_inputs(options)) break;  // check resolves each as its turn comes
    VerbOptions one;
    one.checkpoint = input;
    SHW_TRY(auto more, verbs::resolve_newest_steps(one, &context.progress, context.team));
    settled.insert(settled.end(), more.begin(), more.end());
    input = one.checkpoint;
  }
  if (context.team != nullptr && context.team->rank() != 0) return {};
  for (const verbs::NewestStep& step : settled) context.terminal.say(verbs::in_words(step));
  return {};
}

void report_traffic(Terminal& terminal) {
  const std::uint64_t requests = remote_traffic.requests.load();
  if (requests == 0) return;
  terminal.say("Over the network: " + plural(requests, "request") + ", " +
               human_bytes(remote_traffic.bytes.load()) + ".");
}

// `words`: what was typed, for a verb that may run on the machine of its checkpoint.
int run_verb(const Verb& verb, Context& context, Options& options,
             std::span<const std::string> words = {}) {
  if (auto settled = resolve_newest_steps(context, options); !settled)
    return verb.fail(context, settled.error());
  if (auto asked = name_computed_checkpoint(options); !asked)
    return verb.fail(context, asked.error());
  if (const auto code = run_on_remote_host_if_large(context, words)) return *code;
  if (const auto code = confirm_transfer(context)) return *code;
  int code = verb.run(context);
  report_traffic(context.terminal);
  return context.terminal.out_failed() ? kIo : code;
}

// Error for a verb that does not support several processes: each would do all the work and write to
// the same places.
Error single_process_verb_error(const Context& context, const Launch& launch) {
  return {
      ErrorKind::kUsage,
      "`" + context.options.verb + "` cannot run in several processes, but " +
          std::string(launch.by) + " started " + std::to_string(launch.size),
      {},
      "Remove `--processes mpi` or " + std::string(kProcessesVariable) + ", and start it once."};
}

// Detects srun without --mpi, or a launcher of another MPI, which make each process believe that it
// is alone.
Status check_mpi_matches_launcher(const MpiSession& session, const Launch& launch) {
  if (session.size() == launch.size && session.rank() == launch.rank) return {};
  return fail(ErrorKind::kUsage,
              std::string(launch.by) + " started " + std::to_string(launch.size) +
                  " processes, but MPI knows of " + std::to_string(session.size()),
              {}, "start them with the mpirun of Open MPI, or with `srun --mpi=pmix`");
}

Error mpi_unavailable_error(const Launch& launch) {
  return {ErrorKind::kUsage,
          std::string(launch.by) + " started " + std::to_string(launch.size) +
              " processes but does not tell them how to connect",
          {},
          "start them with `srun --mpi=pmix` (`srun --mpi=list` shows what this Slurm supports), "
          "or with mpirun inside an allocation"};
}

// Processes with different commands would deadlock or misinterpret each other's
// messages.
Result<std::vector<std::string>> agree_on_verb(Team& team, const Verb& verb) {
  Encoder payload;
  // Two builds of one version may use different layouts.
  const std::string own_build = fmt::format("{} (build {})", kProgramVersion, executable_hash());
  payload.add(own_build);
  payload.add(std::string_view(verb.name));
  const std::string cores = team.machine() + "\n" + process_core_list();
  payload.add(cores);
  payload.add(std::uint64_t(::getpid()));
  payload.add(host_name());
  SHW_TRY(auto told, team.allgather(payload.take(), "begin"));
  std::vector<std::string> workers;
  std::size_t on_these_cores = 0;
  for (std::size_t member = 0; member < told.size(); ++member) {
    Decoder theirs(told[member]);
    SHW_TRY(std::string build, theirs.text());
    SHW_TRY(std::string name, theirs.text());
    SHW_TRY(std::string their_cores, theirs.text());
    if (their_cores == cores) ++on_these_cores;
    SHW_TRY(const std::uint64_t process, theirs.number());
    SHW_TRY(const std::string host, theirs.text());
    workers.push_back("process " + std::to_string(process) + " on " + host);
    if (member == 0 && team.rank() != 0 && host == host_name())
      first_process.store(static_cast<pid_t>(process));
    if (build == own_build && name == verb.name) continue;
    return fail(ErrorKind::kUsage,
                fmt::format("worker {} is `{}` of version {}, and worker {} `{}` of {}", member,
                            name, build, team.rank(), verb.name, own_build),
                {}, "start all of them with the same arguments and program version");
  }
  // The processes of a machine use as many threads together as one process would.
  divide_cores(on_these_cores);
  return workers;
}

// Seconds a process may be silent: its rounds are seconds of work on any disk.
#ifndef SHW_PATIENCE_SECONDS  // shorter in test programs
#define SHW_PATIENCE_SECONDS 120
#endif
constexpr std::chrono::seconds kPeerTimeout(SHW_PATIENCE_SECONDS);

// Without communication every process may print to stderr, and rank 0 to stdout.
int fail_without_team(Context& context, const Launch& launch, const Error& error) {
  if (launch.rank == 0) return fail_with(context, error);
  context.terminal.error(error_with_local_paths(context, error));
  return exit_code(error.kind);
}

// Prints an error that all ranks found independently, from rank 0. Waits a while, because a
// launcher may end all processes as soon as one exits.
int fail_from_rank0(Context& context, const Launch& launch, const Error& error) {
  if (launch.rank == 0) return fail_with(context, error);
  // Lets SIGTERM from the launcher end this rank without a message: rank 0 prints the error.
  ::signal(SIGTERM, SIG_DFL);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return exit_code(error.kind);
}

// Stores the error for the end of the session.
int defer_error(Context& context, const Error& error) {
  context.deferred_error = error;
  return exit_code(error.kind);
}

// The transports between the ranks: for chunk data, and for control messages.
struct RankTransports {
  std::unique_ptr<Transport> control;  // must outlive the transport that it opened
  ChosenTileTransport chosen;
};

Result<RankTransports> open_rank_transports(MpiSession& session, const Context& context) {
  RankTransports way;
  TransportOptions wish{context.options.transport, device_options(context)};
  wish.options.opening.within = kPeerTimeout;
  SHW_TRY(way.control, session.transport({}));
  SHW_TRY(way.chosen, choose_tile_transport(wish, *way.control));
  return way;
}

int run_in_team(const Verb& verb, Context& context, Options& typed, const Launch& launch,
                MpiSession& session) {
  MpiOptions options;
  options.stopped = &run_progress.cancelled;
  auto transport = session.transport(options);
  if (!transport) return defer_error(context, transport.error());
  const char* machine = std::getenv(kMachineVariable);
  TransportTeam team(**transport, kPeerTimeout,
                     machine != nullptr ? machine : own_machine_identity());
  auto workers = agree_on_verb(team, verb);
  if (!workers) return defer_error(context, workers.error());
  context.workers = std::move(*workers);
  context.local_rank = launch.local_rank;
  auto way = open_rank_transports(session, context);
  if (!way) return defer_error(context, way.error());
  Transport* nccl = way->chosen.nccl.get();
  team.set_tile_transport(nccl, nccl == nullptr ? "mpi" : "nccl", way->chosen.why);
  context.team = &team;
  int done = run_verb(verb, context, typed);
  context.team = nullptr;
  return done;
}

// mpirun sends SIGTERM to the remaining processes when one exits with another code than 0:
// everything has been reported by then, so it is ignored.
void end_session(MpiSession& session) {
  const bool is_stopped = is_cancelled(&run_progress);
  ::signal(SIGTERM, SIG_IGN);
  session.end(is_stopped);
}

// If one process of a launcher dies, the others get one second between SIGTERM and SIGKILL, less
// than a disk may take to recover. So the signal handler prints this text.
std::string resume_advice(const Options& options) {
  const bool writes =
      options.verb == "repair" || options.verb == "reshard" || options.verb == "convert";
  const std::string out = printable(options.verb == "resume" ? options.checkpoint : options.out);
  if (out.empty() || (!writes && options.verb != "resume")) return {};
  return "\nstopping; finished files are kept: continue with `shardwright resume " + out +
         "`,\nor remove them with `shardwright resume --roll-back " + out + "`\n";
}

// Rank 0 reports the unfinished folder. If rank 0 was killed itself, its neighbour
// does.
void print_unfinished_folder(Context& context, const Launch& launch, Error error) {
  if (left_was_said.load() && !context.options.json) error.advice = {};
  if (launch.rank == 0) {
    fail_with(context, error);
  } else if (is_next_to_first.load() && first_was_killed.load()) {
    error.message = "worker 0 (" + context.workers.front() + ") has ended, and all others stopped";
    context.terminal.error(error_with_local_paths(context, error));
  }
}

int run_on_all_ranks(const Verb& verb, Context& context, Options& typed, const Launch& launch) {
  const std::string left = resume_advice(context.options);
  is_first_process.store(launch.rank == 0);
  is_next_to_first.store(launch.rank != 0 && launch.local_rank == 1);
  if (!left.empty()) resume_text.store(&left);
  // These verbs need no MPI, and MPI would end a process whose launcher has exited.
  if (!verb.supports_several_processes)
    return fail_from_rank0(context, launch, single_process_verb_error(context, launch));
  if (!launch.can_connect) return fail_from_rank0(context, launch, mpi_unavailable_error(launch));
  auto session = begin_mpi(launch);
  if (!session && !has_mpi()) return fail_from_rank0(context, launch, session.error());
  if (!session) return fail_without_team(context, launch, session.error());
  int code = kUsage;
  if (auto there = check_mpi_matches_launcher(**session, launch); !there) {
    code = fail_without_team(context, launch, there.error());
  } else {
    code = run_in_team(verb, context, typed, launch, **session);
    if (!is_cancelled(&run_progress))
      report_final_errors(context, **session, {context.deferred_error});
    else if (context.deferred_error)
      print_unfinished_folder(context, launch, *context.deferred_error);
  }
  resume_text.store(nullptr);
  end_session(**session);
  return code;
}

Error nccl_needs_processes_error() {
  return {ErrorKind::kUsage,
          "NCCL transport needs more than one process",
          {},
          "Start several with `mpirun` or `srun` and `--processes mpi`, or remove --transport."};
}

int run(Options& options, std::span<const std::string> words) {
  limit_threads(options.threads);
  hide_secrets(options);
  const Launch launch = launch_to_join(options);
  Terminal terminal(options, launch);
  Context context{options, terminal, run_progress};
  context.stopped_by = &first_signal;
  compresses_ssh.store(reads_only_metadata(options));
  if (auto refused = check_process_options(options, launch)) return fail_with(context, *refused);
  for (const Verb& verb : kHandlers) {
    if (options.verb != verb.name) continue;
    if (launch.size == 1 && options.transport == TileTransport::kNccl)
      return fail_with(context, nccl_needs_processes_error());
    if (launch.size == 1) {
      if (const auto code = run_on_remote_host(context, words)) return *code;
      return run_verb(verb, context, options, words);
    }
    return run_on_all_ranks(verb, context, options, launch);
  }
  return kUsage;  // unreachable: the parser accepts known verbs only
}

// Usage errors are usually equal on all processes and then printed once.
bool print_once_across_processes(const EarlyExit& early, const Launch& launch) {
  if (launch.size == 1 || early.code == kClean || !launch.can_connect || !has_mpi()) return false;
  auto session = begin_mpi(launch);
  if (!session || !check_mpi_matches_launcher(**session, launch)) return false;
  Options options;
  options.json = early.err.empty();
  Terminal terminal(options, launch);
  Context context{options, terminal, run_progress};
  RankReport own{Error{ErrorKind::kUsage, "the command line cannot be parsed"},
                 options.json ? early.out : early.err};
  report_final_errors(context, **session, own);
  end_session(**session);
  return true;
}

int print_early_exit(const EarlyExit& early, const Launch& launch) {
  if (print_once_across_processes(early, launch)) return early.code;
  Terminal terminal(Options{}, launch);
  if (!early.out.empty()) terminal.out(early.out);
  if (!early.err.empty()) terminal.error(early.err);
  return terminal.out_failed() ? kIo : early.code;
}

}  // namespace
}  // namespace shw::cli

int main(int argc, char** argv) {
  using namespace shw::cli;
  install_signal_handlers();
  terminate_with_parent_process();
  remember_secrets_of_urls();
  auto parsed = parse_arguments(argc, argv);
  if (auto* options = std::get_if<Options>(&parsed))
    return run(*options, std::vector<std::string>(argv + 1, argv + argc));
  return print_early_exit(std::get<EarlyExit>(parsed), launch_to_join(argc, argv));
}
