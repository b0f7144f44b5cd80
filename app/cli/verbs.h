// One function a verb. Each returns the exit code of the program.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "app/cli/options.h"
#include "app/cli/terminal.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/team.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/report/listing.h"
#include "core/report/text.h"
#include "core/rules/check.h"
#include "core/transform/steps_json.h"
#include "core/verbs/command_line.h"
#include "core/verbs/verbs.h"

namespace shw::cli {

// design 5: documented in README.md and the man page, tested in tests/app.
inline constexpr int kClean = 0;
inline constexpr int kFindings = 1;
inline constexpr int kUndecided = 2;  // or incomplete
inline constexpr int kUsage = 3;
inline constexpr int kIo = 4;

struct Context {
  const Options& options;
  Terminal& terminal;
  Progress& progress;
  Team* team = nullptr;  // of the processes that run this verb together; null for one alone
  std::optional<int> local_rank = {};            // of this process among those on its machine
  std::vector<std::string> workers = {};         // of the team: "process 4711 on node-7"
  std::optional<Error> deferred_error = {};      // what ended the verb in a team: said at the end
  const std::atomic<int>* stopped_by = nullptr;  // the signal that cancelled it; 0 without one
};

int run_info(Context& context);
int run_list(Context& context);
int run_show(Context& context);
int run_stats(Context& context);
int run_hash(Context& context);
int run_export_hdf5(Context& context);
int run_map(Context& context);
int run_diff(Context& context);
int run_check(Context& context);
int run_explain(Context& context);
int run_plan(Context& context);
int run_repair(Context& context);
int run_reshard(Context& context);
int run_convert(Context& context);
int run_verify(Context& context);
int run_undo(Context& context);
int run_resume(Context& context);
int run_commit(Context& context);
int run_report(Context& context);
int run_demo(Context& context);
int run_gui(Context& context);

// Takes the steps of a plan; without --out into "<checkpoint><suffix>".
int run_steps(Context& context, const verbs::Opened& opened, const StepPlan& plan,
              const std::string& suffix);

// Says what the steps come to.
int print_steps_plan(Context& context, const verbs::Opened& opened, StepPlan plan);

// Several processes have no terminal to ask at.
Status needs_yes();

// As a person reads it, files named from where that one stands.
std::string error_words(const Context& context, const Error& error);
// With where the workers run that it names.
Error with_places(Error error, const Context& context);

// Says what went wrong, as text or as JSON, and returns the exit code that belongs to it. A member
// of a team keeps it (Context::met), for all of them to say once.
int fail_with(Context& context, const Error& error);
// The exit code of a repair by what is still wrong in its result. Zeros that --fill put where
// elements are lost fail it, and are said with their share of the model, unless they are accepted.
int code_of_result(Context& context, const Checkpoint& source,
                   const std::vector<Finding>& remaining);
// The same of a report: what CI reads holds the error, and a signal is the exit code as in a shell.
int fail_report(Context& context, const Error& error);
// As fail_with(), with an exit code that only this verb has.
int fail_with_code(Context& context, const Error& error, int code);
// Files inside the checkpoint are named from where the person stands: "step_9000/.metadata".
Error seen_from_outside(Error error, const Options& options);
int exit_code(ErrorKind kind);
TextStyle style_of(const Context& context);
TextOptions text_options(const Context& context);

// The steps that several verbs begin with.
Result<std::shared_ptr<const Checkpoint>> open(Context& context);
Result<verbs::Opened> open_all(Context& context);  // with all that the person said beside it
Result<CheckReport> check_now(Context& context, const verbs::Opened& opened,
                              CountedChunks* counted = nullptr);
// From --plan, or made from a check of the checkpoint.
Result<Plan> plan_now(Context& context, const verbs::Opened& opened);
// "Read 2.1 GB at 3.1 GB/s, ..., writing took longest.\n": of what was written; else nothing.
std::string stages_in_words(const Progress& progress);
// Says that a result was begun by an earlier run, where it was.
void print_kept(Context& context, const RepairResult& result);
// What was said about the device, and where GPUs are found.
DeviceOptions device_options(const Context& context);
// What carried tiles between processes, where that is not what always does.
void print_traffic(Context& context, const TeamTraffic& traffic);
// Where somebody asked, or a GPU had a part in it.
void print_device_use(Context& context, const DeviceUse& use, const char* done = "made");

}  // namespace shw::cli
