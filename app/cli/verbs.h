// One function per verb, which returns the exit code of the program.
#pragma once

#include <atomic>
#include <chrono>
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
#include "core/verbs/check_context.h"
#include "core/verbs/command_line.h"
#include "core/verbs/verbs.h"

namespace shw::cli {

// Exit codes, documented in docs/verbs.md and tested in tests/app.
inline constexpr int kClean = 0;
inline constexpr int kFindings = 1;
inline constexpr int kUndecided = 2;  // undecided or incomplete
inline constexpr int kUsage = 3;
inline constexpr int kIo = 4;

// Why elements would travel here over ssh, and how that can be avoided; empty if none would.
struct TransferReason {
  std::string why, advice;
};

struct Context {
  const Options& options;
  Terminal& terminal;
  Progress& progress;
  Team* team = nullptr;                   // the processes that run the verb together; null for one
  std::optional<int> local_rank = {};     // rank on this machine
  std::vector<std::string> workers = {};  // "process 4711 on node-7", per rank of the team
  std::optional<Error> deferred_error = {};      // error of a team verb, reported at the end
  std::vector<std::string>* answers = nullptr;   // JSON answers, printed as one list at the end
  const std::atomic<int>* stopped_by = nullptr;  // the signal that cancelled the verb, or 0
  std::string format = {};                       // of the opened checkpoint
  std::vector<std::shared_ptr<const void>> listed_places = {};  // kept until they are opened
  TransferReason transfer = {};
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
};

int run_info(Context& context);
int run_list(Context& context);
int run_show(Context& context);
int run_stats(Context& context);
int run_hash(Context& context);
int run_export_hdf5(Context& context);
int run_map(Context& context);
int run_diff(Context& context);
int run_learn(Context& context);
int run_check(Context& context);
int run_explain(Context& context);
int run_plan(Context& context);
int run_repair(Context& context);
int run_reshard(Context& context);
int run_convert(Context& context);
int run_combine(Context& context);  // merge, average, delta, apply, extract
int run_verify(Context& context);
int run_undo(Context& context);
int run_resume(Context& context);
int run_commit(Context& context);
int run_upload(Context& context);
int run_report(Context& context);
int run_demo(Context& context);
int run_gui(Context& context);

// Applies a plan with steps; the default output is "<checkpoint><suffix>".
int run_steps(Context& context, const verbs::Opened& opened, const Plan& plan,
              const std::string& suffix);

// Prints what a plan with steps would do.
int print_steps_plan(Context& context, const verbs::Opened& opened, const Plan& plan);

// Fails for several processes, which cannot ask on a terminal.
Status confirmation_required_error();

// The answer with path, tool, format and seconds.
std::string with_origin_of(const Context& context, std::string json);
// Prints the answer of a verb. With --json it has its origin too, and joins the others
// (Context::answers).
void print_answer(Context& context, std::string text);
// The rules that --ignore and the configuration of the working directory name.
Result<std::vector<std::string>> rules_to_ignore(const Options& options);
// The exit code of `check` and `report`.
int exit_code_of_check(const CheckReport& report, const verbs::CheckRequest& asked,
                       const std::string& fail_on);

// The error as text, with paths relative to the working directory.
std::string error_with_local_paths(const Context& context, const Error& error);
// Adds the locations of workers that the error names.
Error with_places(Error error, const Context& context);

// Prints an error as text or JSON and returns its exit code. In a team it is stored in
// Context::deferred_error and reported once at the end.
int fail_with(Context& context, const Error& error);
// The exit code of a repair by the findings left in its result. Zeros that --fill put in place of
// lost elements fail the repair, with their share of the model, unless accepted.
int exit_code_of_result(Context& context, const Checkpoint& source,
                        const std::vector<Finding>& remaining);
// Like fail_with(), for report: the output for CI contains the error; signals give the shell's exit
// code.
int fail_report(Context& context, const Error& error);
// Like fail_with(), with an exit code specific to this verb.
int fail_with_code(Context& context, const Error& error, int code);
// Prefixes files inside the checkpoint with its path: "step_9000/.metadata".
Error with_checkpoint_path(Error error, const Options& options);
int exit_code(ErrorKind kind);
TextStyle style_of(const Context& context);
TextOptions text_options(const Context& context);

// Checks before a run that --upload can receive the result.
Status check_upload(const Context& context);
// Uploads a folder to a bucket, or resumes an interrupted upload.
Result<UploadResult> upload_or_resume_folder(Context& context, const std::string& folder,
                                             const std::string& target);
// Uploads the result and notes that in it; does nothing without --upload.
Status upload_result(Context& context, RepairResult& result);
// "  uploaded     s3://... "; empty without an upload.
std::string uploaded_to_text(const RepairResult& result);

// Steps shared by several verbs.
Result<std::shared_ptr<const Checkpoint>> open(Context& context);
Result<verbs::Opened> open_all(Context& context);  // opens checkpoint, spec and reference as given
Result<CheckReport> check_opened(Context& context, const verbs::Opened& opened,
                                 CountedChunks* counted = nullptr);
// The plan from --plan, or from a new check.
Result<Plan> requested_or_new_plan(Context& context, const verbs::Opened& opened);
// "Read 2.1 GB at 3.1 GB/s, ..., writing took longest.\n"; empty if nothing was written.
std::string stage_rates_text(const Progress& progress);
// "Prove it:  shardwright verify ...", and how to take it back if it was done in place.
std::string next_steps_text(const std::string& output, bool in_place);
// Reports that an earlier run's work was reused.
void print_reused_work(Context& context, const RepairResult& result);
// The device options of the user, with GPU detection.
DeviceOptions device_options(const Context& context);
// Reports the transport between processes if it was not the default.
void print_traffic(Context& context, const TeamTraffic& traffic);
// Reports the device if one was requested or a GPU was used.
void print_device_use(Context& context, const DeviceUse& use, const char* done = "made");

}  // namespace shw::cli
