#include "core/session/disk_run.h"

#include <utility>

#include "core/io/store.h"
#include "core/session/stopped_run.h"
#include "core/verbs/disk_state.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/run/run_numbers.h"
#include "core/verbs/run/run_steps.h"

namespace shw {
namespace {

// Returned if nothing changed. These commands run again and again while the window is idle, so no
// snapshot is published then and nothing is redrawn.
tl::unexpected<Error> unchanged_error() {
  return cancelled_error();
}

}  // namespace

std::optional<Command> parse_run(std::string_view rest) {
  return RunCommand{std::string(rest)};
}

std::string print_run(const Command& command) {
  return as<RunCommand>(command).folder;
}

Result<Change> run_steps(const Snapshot& before, const Command& command, Progress* progress) {
  std::string folder = as<RunCommand>(command).folder;
  const verbs::RunSteps* shown = before.run.get();
  if (folder.empty() && shown == nullptr) return unchanged_error();
  if (folder.empty()) folder = shown->path;
  const bool is_shown = shown != nullptr && shown->asked == folder;
  verbs::RunSteps run;
  if (is_shown && !shown->is_complete() && !shown->error) {
    SHW_TRY(run, verbs::inspect_next_step(*shown, progress));
  } else {
    run = verbs::list_run(verbs::expanded_path(folder), shown);
    if (is_shown && run.is_like(*shown)) return unchanged_error();
  }
  run.asked = folder;
  auto now = std::make_shared<const verbs::RunSteps>(std::move(run));
  return Change([now](Snapshot& s) { s.run = now; });
}

std::shared_ptr<const verbs::RunSteps> list_opened_run(const Snapshot& before,
                                                       const std::string& folder) {
  auto run = verbs::list_run(folder, before.run.get());
  run.asked = run.path;
  return std::make_shared<const verbs::RunSteps>(std::move(run));
}

Change show_run(const VerbOptions& options, std::shared_ptr<const verbs::RunSteps> run) {
  auto stopped = std::make_shared<const verbs::StoppedRuns>(
      verbs::find_stopped_runs_in(posix_store(), options.checkpoint));
  return [options, run = std::move(run), stopped](Snapshot& s) {
    s = blank(s);
    s.options = options;
    s.run = run;
    s.stopped = stopped;
  };
}

Result<Change> run_run_numbers(const Snapshot& before, const Command&, Progress* progress) {
  if (before.run == nullptr) return fail(ErrorKind::kUsage, "no folder of steps is open");
  auto counted = verbs::count_next_step(
      *before.run, before.run_numbers ? *before.run_numbers : verbs::RunNumbers{}, progress);
  if (!counted) return Change([](Snapshot&) {});
  auto numbers = std::make_shared<const verbs::RunNumbers>(std::move(*counted));
  return Change([numbers](Snapshot& s) { s.run_numbers = numbers; });
}

Result<Change> run_disk_check(const Snapshot& before, const Command&, Progress*) {
  if (before.checkpoint == nullptr || before.disk == nullptr) return unchanged_error();
  std::string changes = verbs::changes_since(*before.checkpoint, *before.disk);
  std::shared_ptr<const verbs::StoppedRuns> stopped = before.stopped;
  const std::string& path = before.options.checkpoint;
  if (stopped == nullptr || stopped->seen != verbs::unfinished_marks(posix_store(), path))
    stopped = search_stopped_runs(before);
  if (changes == before.changed_on_disk && stopped == before.stopped) return unchanged_error();
  return Change([changes, stopped](Snapshot& s) {
    s.changed_on_disk = changes;
    s.stopped = stopped;
  });
}

}  // namespace shw
