#include "core/session/commands.h"

#include <algorithm>
#include <array>

#include "core/session/command_run.h"
#include "core/session/command_text.h"
#include "core/session/content_run.h"
#include "core/session/content_text.h"
#include "core/session/disk_run.h"
#include "core/session/habit_run.h"
#include "core/session/pin_run.h"

namespace shw {
namespace {

// A command without arguments.
template <class C>
std::optional<Command> parse_without_arguments(std::string_view rest) {
  if (!rest.empty()) return std::nullopt;
  return C{};
}
std::string print_nothing(const Command&) {
  return {};
}

// True for the verb of a command, such as "compare" in "cancel compare".
bool is_verb(std::string_view word);
template <class C>
std::optional<Command> parse_of_verb(std::string_view rest) {
  if (!rest.empty() && !is_verb(rest)) return std::nullopt;
  return C{std::string(rest)};
}
template <class C>
std::string print_of_verb(const Command& command) {
  return as<C>(command).verb;
}

constexpr std::array<CommandRow, std::variant_size_v<Command>> kTable{{
    {"open",
     "open PATH [spec PATH] [against PATH] [mesh AXIS=SIZE,...] [tensor FQN] [tile BOX] [finding "
     "RULE]",
     "Opening", Lane::kJob, parse_open, print_open, run_open},
    {"check", "check [metadata|headers|data]", "Checking", Lane::kJob, parse_check, print_check,
     run_check},
    {"mesh", "mesh [AXIS=SIZE,...]", "Reading the mesh", Lane::kJob, parse_given_mesh, print_mesh,
     run_mesh},
    {"plan", "plan [over-there] [fill zero|cast|from:CHECKPOINT]", "Planning", Lane::kJob,
     parse_plan, print_plan, run_plan},
    {"repair", "repair [plan HASH] [device auto|cpu|cuda[:N]] [out PATH | in-place]", "Repairing",
     Lane::kJob, parse_repair, print_repair, run_repair},
    {"verify", "verify", "Verifying", Lane::kConcurrent, parse_without_arguments<VerifyCommand>,
     print_nothing, run_verify},
    {"undo", "undo", "Taking the repair back", Lane::kJob, parse_without_arguments<UndoCommand>,
     print_nothing, run_undo},
    {"cancel", "cancel [VERB]", "", Lane::kNow, parse_of_verb<CancelCommand>,
     print_of_verb<CancelCommand>, nullptr},
    {"select", "select FQN", "", Lane::kNow, parse_select, print_select, select_tensor},
    {"tile", "tile [N]", "", Lane::kNow, parse_tile, print_tile, select_chunk},
    {"finding", "finding N", "", Lane::kNow, parse_finding, print_finding, select_finding},
    {"filter", "filter [TEXT]", "Filtering", Lane::kList, parse_filter, print_filter, nullptr},
    {"sort", "sort recorded|name|bytes|tiles|findings|shape|dtype [desc]", "Sorting", Lane::kList,
     parse_sort, print_sort, nullptr},
    {"plan-step", "plan-step N on|off", "Changing the plan", Lane::kQuick, parse_step, print_step,
     run_step},
    {"plan-undo", "plan-undo", "", Lane::kNow, parse_without_arguments<PlanUndoCommand>,
     print_nothing, run_plan_undo},
    {"plan-redo", "plan-redo", "", Lane::kNow, parse_without_arguments<PlanRedoCommand>,
     print_nothing, run_plan_redo},
    {"plan-edit", "plan-edit JSON", "Reading the plan", Lane::kQuick, parse_edit_plan,
     print_edit_plan, run_edit_plan},
    {"plan-save", "plan-save PATH", "Saving the plan", Lane::kQuick, parse_save_plan,
     print_save_plan, run_save_plan},
    {"plan-load", "plan-load PATH", "Reading the plan", Lane::kQuick, parse_load_plan,
     print_load_plan, run_load_plan},
    {"dry-run", "dry-run", "Estimating the repair", Lane::kConcurrent,
     parse_without_arguments<DryRunCommand>, print_nothing, run_dry_run},
    {"target", "target [PATH]", "Checking the folder to write", Lane::kQuick, parse_target,
     print_target, run_target},
    {"resume", "resume FOLDER", "Resuming the repair", Lane::kJob, parse_resume, print_resume,
     run_resume},
    {"roll-back", "roll-back FOLDER", "Discarding the unfinished result", Lane::kJob,
     parse_roll_back, print_roll_back, run_roll_back},
    {"commit", "commit", "Deleting the undo copy", Lane::kQuick,
     parse_without_arguments<CommitCommand>, print_nothing, run_commit},
    {"bytes", "bytes [finding | next | previous | off | [file PATH] at OFFSET | find PATTERN]",
     "Reading bytes", Lane::kLook, parse_show_bytes, print_show_bytes, run_show_bytes},
    {"values", "values [off | next-nan | next-difference | [I, A:B, C:D] [transposed]]",
     "Reading values", Lane::kLook, parse_show_values, print_show_values, run_show_values},
    {"browse", "browse [FOLDER]", "Listing", Lane::kLook, parse_browse, print_browse, run_browse},
    {"go", "go back|forward", "", Lane::kNow, parse_go, print_go, nullptr},
    {"compare", "compare [data] PATH", "Comparing", Lane::kConcurrent, parse_compare, print_compare,
     run_compare},
    {"difference", "difference N", "", Lane::kNow, parse_difference, print_difference,
     select_difference},
    {"explain-error", "explain-error TEXT", "Explaining", Lane::kLook, parse_explain_error,
     print_explain_error, run_explain_error},
    {"report", "report [PATH]", "Writing the report", Lane::kQuick, parse_report, print_report,
     run_report},
    {"demo", "demo FOLDER", "Making the demo", Lane::kJob, parse_demo, print_demo, run_demo},
    {"tile-values", "tile-values [off | of FQN]", "Reading tiles", Lane::kLook, parse_tile_values,
     print_tile_values, run_tile_values},
    {"pause", "pause [VERB]", "", Lane::kNow, parse_of_verb<PauseCommand>,
     print_of_verb<PauseCommand>, nullptr},
    {"continue", "continue [VERB]", "", Lane::kNow, parse_of_verb<ContinueCommand>,
     print_of_verb<ContinueCommand>, nullptr},
    {"run", "run [FOLDER]", "Reading the steps", Lane::kLook, parse_run, print_run, run_steps},
    {"disk", "disk", "Checking for changed files", Lane::kLook,
     parse_without_arguments<DiskCommand>, print_nothing, run_disk_check},
    {"values-save", "values-save npy|csv [PATH]", "Writing values", Lane::kConcurrent,
     parse_save_values, print_save_values, run_save_values},
    {"view-save", "view-save [PATH]", "Saving the view", Lane::kQuick, parse_save_view,
     print_save_view, run_save_view},
    {"run-numbers", "run-numbers", "Counting norms and NaN of every step", Lane::kConcurrent,
     parse_without_arguments<RunNumbersCommand>, print_nothing, run_run_numbers},
    {"learn", "learn PATH", "Finding the map of names", Lane::kConcurrent, parse_learn, print_learn,
     run_learn},
    {"write-as", "write-as FORMAT|keep [mesh AXIS=SIZE,...] [dtype DTYPE] [weights-only]",
     "Planning what is written", Lane::kJob, parse_write_as, print_write_as, run_write_as},
    {"tensor-numbers", "tensor-numbers", "Reading norm, zeros and NaN of every tensor",
     Lane::kConcurrent, parse_without_arguments<TensorNumbersCommand>, print_nothing,
     run_tensor_numbers},
    {"pin", "pin [NOTE]", "Pinning", Lane::kQuick, parse_pin, print_pin, run_pin},
    {"unpin", "unpin N", "Unpinning", Lane::kQuick, parse_unpin, print_unpin, run_unpin},
    {"hash", "hash [PATH]", "Hashing every tensor", Lane::kConcurrent, parse_hash, print_hash,
     run_hash},
    {"place", "place report|view|hashes|npy|csv|png|svg [PATH]", "Looking at the place",
     Lane::kLook, parse_place, print_place, run_inspect_new_file},
}};

bool is_verb(std::string_view word) {
  return std::any_of(kTable.begin(), kTable.end(),
                     [&](const CommandRow& row) { return row.verb == word; });
}

}  // namespace

std::span<const CommandRow> command_table() {
  return kTable;
}

const CommandRow& row_of(const Command& command) {
  return kTable[command.index()];
}

std::string to_text(const Command& command) {
  const CommandRow& row = row_of(command);
  std::string rest = row.print(command);
  return std::string(row.verb) + (rest.empty() ? "" : " " + rest);
}

Result<Command> parse_command(std::string_view line) {
  std::size_t space = std::min(line.find(' '), line.size());
  std::string_view verb = line.substr(0, space);
  std::string_view rest = space < line.size() ? line.substr(space + 1) : std::string_view{};
  std::string expected;
  for (const CommandRow& row : kTable) {
    if (row.verb == verb) {
      if (auto command = row.parse(rest)) return *command;
      expected = row.form;
      break;
    }
    expected += (expected.empty() ? "one of " : ", ") + std::string(row.verb);
  }
  return fail(ErrorKind::kUsage, "cannot read the command \"" + std::string(line) +
                                     "\": expected " + std::move(expected));
}

std::vector<Command> follow_up(const Snapshot& snapshot) {
  if (snapshot.checkpoint == nullptr || snapshot.report == nullptr) return {};
  bool mendable = false, concerned = false;
  for (const Finding& finding : snapshot.report->findings) {
    if (finding.severity == Severity::kInfo) continue;
    mendable = mendable || finding.remedy.has_value();
    concerned = concerned || std::any_of(finding.subjects.begin(), finding.subjects.end(),
                                         [&](const std::string& subject) {
                                           return snapshot.checkpoint->find(subject).has_value();
                                         });
  }
  std::vector<Command> commands;
  if (mendable && snapshot.plan == nullptr)
    commands.emplace_back(PlanCommand{snapshot.options.fill, true});
  if (concerned && snapshot.filter.empty()) commands.emplace_back(FilterCommand{"finding:*"});
  return commands;
}

}  // namespace shw
