// The headless program: arguments to a verb, a verb to an exit code.
#include <unistd.h>
#include <csignal>
#include <cstring>

#include "app/cli/options.h"
#include "app/cli/terminal.h"
#include "app/cli/verbs.h"
#include "core/cluster/launch.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

struct Verb {
  const char* name;
  int (*run)(Context&);
};

constexpr Verb kHandlers[] = {
    {"info", run_info},
    {"ls", run_list},
    {"show", run_show},
    {"map", run_map},
    {"check", run_check},
    {"plan", run_plan},
    {"repair", run_repair},
    {"verify", run_verify},
    {"undo", run_undo},
    {"resume", run_resume},
    {"commit", run_commit},
    {"report", run_report},
    {"explain", run_explain},
    {"demo", run_demo},
    {"gui", run_gui},
    {"stats", run_stats},
    {"reshard", run_reshard},
    {"convert", run_convert},
    {"export-hdf5", run_export_hdf5},
    {"diff", run_diff},
};

Progress run_progress;  // static: the signal handler has to reach it

// Once: the job ends cleanly at its next look. The handler removes itself, so that a second signal
// stops the program at once.
void cancel_on_signal(int signal) {
  // Whoever sends SIGTERM (a scheduler that takes the machine away) wants to go on later.
  if (signal == SIGTERM) run_progress.keeps.store(true, std::memory_order_relaxed);
  run_progress.cancelled.store(true, std::memory_order_relaxed);
  static constexpr char kWords[] = "\nstopping; once more to stop at once\n";
  [[maybe_unused]] auto ignored = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
}
static_assert(std::atomic<bool>::is_always_lock_free, "the handler stores to it");

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = cancel_on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A reader that leaves is an error of write(2), not the end of a repair.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

// Of several processes each would do the whole of it, and all would write to the same places.
// stdout is that of the first.
int refuse_several(Context& context, const Launch& launch) {
  Error error{ErrorKind::kUsage,
              "`" + context.options.verb + "` does not run in several processes, and " +
                  std::string(launch.by) + " has begun " + std::to_string(launch.size),
              {},
              "Begin it without " + std::string(launch.by) +
                  "; one that a program begins which runs under it: with " + kAloneVariable +
                  "=1 in its environment."};
  if (launch.rank == 0) return fail_with(context, error);
  context.terminal.error(error_to_text(error, text_options(context)));
  return exit_code(error.kind);
}

int run(const Options& options) {
  Terminal terminal(options);
  Context context{options, terminal, run_progress};
  Launch launch = launch_of_this_process();
  if (launch.size > 1) return refuse_several(context, launch);
  for (const Verb& verb : kHandlers) {
    if (options.verb != verb.name) continue;
    int code = verb.run(context);
    return terminal.out_failed() ? kIo : code;
  }
  return kUsage;  // the parser lets no other verb through
}

}  // namespace
}  // namespace shw::cli

int main(int argc, char** argv) {
  using namespace shw::cli;
  install_signal_handlers();
  auto parsed = parse_arguments(argc, argv);
  if (const auto* options = std::get_if<Options>(&parsed)) return run(*options);
  const EarlyExit& early = std::get<EarlyExit>(parsed);
  Terminal terminal{Options{}};
  if (!early.out.empty()) terminal.out(early.out);
  if (!early.err.empty()) terminal.error(early.err);
  return terminal.out_failed() ? kIo : early.code;
}
