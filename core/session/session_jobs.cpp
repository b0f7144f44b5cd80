// Long jobs in sequence, and concurrent read-only
// jobs.
#include <algorithm>
#include <iterator>

#include "core/base/parallel.h"
#include "core/base/stop_requests.h"
#include "core/base/threads.h"
#include "core/base/words.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/rules/damage.h"
#include "core/session/command_run.h"
#include "core/session/content_run.h"
#include "core/session/session_state.h"
#include "core/session/stopped_run.h"
#include "core/verbs/plan_file.h"

namespace shw {
namespace {

constexpr double kNoticed = 0.3;  // seconds

std::string title_of(const Command& command) {
  std::string title(row_of(command).title);
  if (const auto* open = std::get_if<OpenCommand>(&command)) title += " " + open->path;
  const auto* check = std::get_if<CheckCommand>(&command);
  if (check != nullptr && check->depth == Depth::kData) title += " every byte";
  return title;
}

// True for read-only commands whose progress can be shown meanwhile.
bool is_concurrent(const Command& command, const Snapshot& snapshot) {
  const auto* check = std::get_if<CheckCommand>(&command);
  bool looks_deeper = check != nullptr && check->depth == Depth::kData &&
                      snapshot.report != nullptr &&
                      !is_repaired_in_place(snapshot);  // which opens it again
  return looks_deeper || row_of(command).lane == Lane::kConcurrent;
}

// True if it writes files that concurrent jobs read.
bool changes_what_is_open(const Command& command, const Snapshot& snapshot) {
  auto is_open = [&](const std::string& folder) {
    return verbs::expanded_path(folder) == verbs::expanded_path(snapshot.options.checkpoint);
  };
  if (const auto* repair = std::get_if<RepairCommand>(&command)) return repair->options.in_place;
  if (const auto* resume = std::get_if<ResumeCommand>(&command)) return is_open(resume->folder);
  if (const auto* back = std::get_if<RollBackCommand>(&command)) return is_open(back->folder);
  return std::holds_alternative<UndoCommand>(command);
}

StopEffect stop_effect_of(const Command& command) {
  if (const auto* repair = std::get_if<RepairCommand>(&command))
    return repair->options.in_place ? StopEffect::kUnchanged : StopEffect::kResumable;
  if (std::holds_alternative<ResumeCommand>(command)) return StopEffect::kResumable;
  if (std::holds_alternative<UndoCommand>(command) ||
      std::holds_alternative<RollBackCommand>(command) ||
      std::holds_alternative<CommitCommand>(command))
    return StopEffect::kFinished;
  const bool makes_file = std::holds_alternative<SaveValuesCommand>(command) ||
                          std::holds_alternative<HashCommand>(command) ||
                          std::holds_alternative<ReportCommand>(command) ||
                          std::holds_alternative<SaveViewCommand>(command) ||
                          std::holds_alternative<SavePlanCommand>(command) ||
                          std::holds_alternative<DemoCommand>(command);
  return makes_file ? StopEffect::kOutputDiscarded : StopEffect::kNothingWritten;
}

// True if it does not depend on the result of the running job.
bool can_run_before_running_job(const Command& command, const Command& running,
                                const Snapshot& snapshot) {
  bool waits_for_result = std::holds_alternative<VerifyCommand>(command) ||
                          std::holds_alternative<DryRunCommand>(command);
  bool leaves_files = std::holds_alternative<PlanCommand>(running) ||
                      std::holds_alternative<WriteAsCommand>(running) ||
                      std::holds_alternative<RepairCommand>(running) ||
                      std::holds_alternative<ResumeCommand>(running);
  return leaves_files && !waits_for_result && !changes_what_is_open(running, snapshot);
}

// True if the verdict that recent places keep may be another one after it.
bool changes_verdict(const Command& command) {
  return std::holds_alternative<CheckCommand>(command) ||
         std::holds_alternative<RepairCommand>(command) ||
         std::holds_alternative<ResumeCommand>(command) ||
         std::holds_alternative<UndoCommand>(command) ||
         std::holds_alternative<VerifyCommand>(command) ||
         std::holds_alternative<TensorNumbersCommand>(command);
}

bool has_verb(const Command& command, const std::string& verb) {
  return verb.empty() || row_of(command).verb == verb;
}

}  // namespace

bool is_still_viewed(const Snapshot& now, const Snapshot& before, const Command& command) {
  // Opening a step keeps the listing of its run, opening another run does not.
  if (std::holds_alternative<RunCommand>(command)) return now.run == before.run;
  // Counting a run's numbers continues while one of its steps is opened.
  auto run_path = [](const Snapshot& s) { return s.run != nullptr ? s.run->path : std::string(); };
  if (std::holds_alternative<RunNumbersCommand>(command)) return run_path(now) == run_path(before);
  if (now.checkpoint != before.checkpoint) return false;
  if (std::holds_alternative<VerifyCommand>(command)) return now.repaired == before.repaired;
  bool checks = std::holds_alternative<CheckCommand>(command);
  return !checks || (now.report == before.report && now.options.mesh == before.options.mesh);
}

RunningJob::RunningJob(Command what)
    : command(std::move(what)),
      title(title_of(command)),
      is_quick(row_of(command).lane == Lane::kQuick) {}

void RunningJob::pause() {
  if (progress->paused || progress->cancelled) return;
  pause_begin = Clock::now();
  progress->pause();
}

void RunningJob::go_on() {
  if (!progress->paused) return;
  Clock::duration held = Clock::now() - pause_begin;
  begin += held;
  phase_begin += held;
  progress->go_on();
}

void RunningJob::cancel() {
  go_on();
  progress->cancel();
}

JobState RunningJob::state() {
  JobState job;
  job.verb = row_of(command).verb;
  job.stop_effect = stop_effect_of(command);
  job.changes_open = changes_open;
  job.title = title;
  job.seconds = std::chrono::duration<double>(now() - begin).count();
  job.running = !is_quick || job.seconds > kNoticed;
  job.stopping = job.running && progress->cancelled;
  job.paused = job.running && progress->paused;
  job.phase = progress->phase;
  const bool is_new_phase = job.phase != seen_phase;
  if (is_new_phase) {
    seen_phase = job.phase;
    phase_begin = now();
  }
  seen_proof = seen_proof || job.phase == Phase::kVerifying;
  job.is_proof_done = seen_proof && job.phase != Phase::kVerifying;
  job.phase_seconds = std::chrono::duration<double>(now() - phase_begin).count();
  for (std::size_t i = 0; i < kStages; ++i)
    job.stages[i] = {progress->stages[i].bytes,
                     static_cast<double>(progress->stages[i].nanoseconds) * 1e-9};
  job.threads = worker_count();
  job.done = progress->done;
  job.total = progress->total;
  job.in_bytes = progress->in_bytes;
  follow(job, is_new_phase);
  return job;
}

// The number of phases is unknown, so each phase takes a share of the remaining progress bar.
void RunningJob::follow(JobState& job, bool is_new_phase) {
  const bool begins = is_new_phase || job.done < seen_done;
  if (begins) {
    bytes_before += seen_in_bytes ? seen_done : 0;
    part_before = part;
  }
  seen_done = job.done;
  seen_in_bytes = job.in_bytes;
  job.bytes_in_all = bytes_before + (job.in_bytes ? job.done : 0);
  const double share = job.in_bytes ? 0.8 : 0.3;
  const double done =
      job.total == 0
          ? 0
          : std::min(1.0, static_cast<double>(job.done) / static_cast<double>(job.total));
  part = std::max(part, part_before + (0.98 - part_before) * share * done);
  job.part = part;
}

namespace {

void forget_failure(Snapshot& s, std::string_view verb) {
  if (s.failure != nullptr && s.failure->verb == verb) s.failure = nullptr;
}

}  // namespace

void Session::State::set_error(Snapshot& s, std::string_view verb, Error error) {
  if (error.kind != ErrorKind::kCancelled)
    s.failure = std::make_shared<const FailedCommand>(FailedCommand{std::string(verb), error});
  s.error = std::move(error);
}

void Session::State::publish_begin(std::string_view verb) {
  publish([&](Snapshot& s) {
    s.error.reset();
    forget_failure(s, verb);
  });
}

// False on failure: dependent commands are dropped.
bool Session::State::run_command(const Command& command, Progress* progress) {
  const JobScope works_for(progress == nullptr ? nullptr : &progress->cancelled);
  // The old checkpoint stays until the new one is open, or if opening fails.
  auto before = now();
  const auto* open = std::get_if<OpenCommand>(&command);
  if (open != nullptr && before->checkpoint == nullptr)
    publish([&](Snapshot& s) { s.options.checkpoint = open->path; });
  bool repairs = std::holds_alternative<RepairCommand>(command) ||
                 std::holds_alternative<ResumeCommand>(command);
  // Finished files stay after cancellation and can be resumed.
  if (repairs && progress != nullptr) progress->keeps = true;
  auto change = row_of(command).run(*now(), command, progress);
  if (!change) {
    if (repairs) inspect_partial_folders(command);
    Error error = std::move(change).error();
    if (open != nullptr && error.place.file.empty()) error.place.file = open->path;
    if (open != nullptr) {
      std::lock_guard lock(mutex);
      history.stay();
    }
    if (open != nullptr && before->checkpoint == nullptr && before->run != nullptr)
      publish([&](Snapshot& s) { s.options.checkpoint = before->options.checkpoint; });
    publish_error(row_of(command).verb, std::move(error));
    return false;
  }
  publish(*change);
  // Filter terms like finding:* depend on the report.
  if (row_of(command).lane == Lane::kJob) request_list();
  if (changes_verdict(command)) remember();
  // Work of a stopped repair is reported as soon as there is a plan.
  if (auto after = now(); after->plan != nullptr && after->target == nullptr)
    inspect_partial_folders(command);
  if (auto after = now(); after->checkpoint != before->checkpoint || after->run != before->run) {
    std::lock_guard lock(mutex);
    for (RunningJob& other : concurrent) {
      if (!is_still_viewed(*after, *before, other.command)) other.cancel();  // obsolete results
    }
  }
  return true;
}

// For a command of the caller's thread: the other threads publish meanwhile, and what it has
// resolved, such as an index, counts only for the snapshot that it was resolved in.
bool Session::State::run_now(const Command& command) {
  while (true) {
    auto seen = now();
    auto change = row_of(command).run(*seen, command, nullptr);
    if (!change) {
      publish_error(row_of(command).verb, std::move(change).error());
      return false;
    }
    bool is_done = false;
    publish([&](Snapshot& s) {
      is_done = s.checkpoint == seen->checkpoint && s.report == seen->report &&
                s.edits == seen->edits && s.compared == seen->compared;
      if (!is_done) return;
      (*change)(s);
      forget_failure(s, row_of(command).verb);
    });
    if (is_done) return true;
  }
}

// Runs on a thread that ends with the command.
void Session::State::run_concurrent_command(std::list<RunningJob>::iterator mine,
                                            const std::shared_ptr<const Snapshot>& before) {
  const std::shared_ptr<Progress> progress = mine->progress;
  const JobScope works_for(&progress->cancelled);
  const Command& command = mine->command;
  publish_begin(row_of(command).verb);
  bool checks = std::holds_alternative<CheckCommand>(command);
  bool brought = false, goes_on = true;
  for (auto seen = before; goes_on; seen = now()) {
    auto change = row_of(command).run(*seen, command, mine->progress.get());
    brought = false;
    publish([&](Snapshot& s) {
      if (mine->is_replaced || !is_still_viewed(s, *before, command)) return;
      brought = change.has_value();
      if (change) (*change)(s);
      if (!change) set_error(s, row_of(command).verb, std::move(change).error());
    });
    goes_on = brought && !mine->progress->cancelled && has_more_results(*now(), command);
  }
  if (checks && brought) request_list();
  if (brought && changes_verdict(command)) remember();
  {
    std::lock_guard lock(mutex);
    ended.push_back(std::move(mine->thread));
    concurrent.erase(mine);
  }
  publish([](Snapshot&) {});
}

void Session::State::begin_concurrent(Command command) {
  for (RunningJob& other : concurrent) {
    if (other.command.index() != command.index()) continue;
    other.is_replaced = true;
    other.cancel();
  }
  auto mine = concurrent.emplace(concurrent.end(), std::move(command));
  auto run = [this, mine, before = snapshot] { run_concurrent_command(mine, before); };
  if (start_thread(mine->thread, run)) return;
  jobs.push_back({std::move(mine->command), ++last_group});  // queued instead
  concurrent.erase(mine);
}

// Called by the thread of long jobs and at the end: an ended thread cannot join itself.
void Session::State::join_ended() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex);
    threads.swap(ended);
  }
  for (std::thread& thread : threads) thread.join();  // returns quickly: their work is done
}

// Dependent commands are queued in sequence; others start at once.
void Session::State::queue(std::deque<Command> commands) {
  {
    std::lock_guard lock(mutex);
    const std::uint64_t group = ++last_group;
    for (Command& command : commands) {
      bool is_free =
          jobs.empty() && job && can_run_before_running_job(command, job->command, *snapshot);
      if (is_free && is_concurrent(command, *snapshot))
        begin_concurrent(std::move(command));
      else
        jobs.push_back({std::move(command), group});
    }
  }
  changed.notify_all();
}

void Session::State::drop_group(std::uint64_t group) {
  std::erase_if(jobs, [&](const QueuedCommand& each) { return each.group == group; });
}

void Session::State::run_jobs() {
  while (true) {
    join_ended();
    std::shared_ptr<Progress> progress;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !jobs.empty(); });
      if (stopping) return;
      auto [command, group] = std::move(jobs.front());
      jobs.pop_front();
      if (is_concurrent(command, *snapshot)) {
        begin_concurrent(std::move(command));
        continue;
      }
      job.emplace(std::move(command));
      job_group = group;
      if (starts_next_paused) job->pause();
      starts_next_paused = false;
      progress = job->progress;
      job->changes_open = changes_what_is_open(job->command, *snapshot);
      if (job->changes_open) {
        for (RunningJob& other : concurrent) other.cancel();
        changed.wait(lock, [&] { return stopping || concurrent.empty(); });
        if (stopping) return;
      }
    }
    publish_begin(row_of(job->command).verb);
    bool done = run_command(job->command, progress.get());
    {
      std::lock_guard lock(mutex);
      if (!done) drop_group(job_group);
      starts_next_paused = progress->paused && !jobs.empty();  // ended before it could pause
      job.reset();
    }
    publish([](Snapshot&) {});
  }
}

void Session::State::cancel(const std::string& verb) {
  std::lock_guard lock(mutex);
  auto of_it = [&](const Command& command) { return has_verb(command, verb); };
  if (job && of_it(job->command)) {
    job->cancel();
    drop_group(job_group);
  }
  std::erase_if(jobs, [&](const QueuedCommand& each) { return of_it(each.command); });
  for (RunningJob& each : concurrent) {
    if (of_it(each.command)) each.cancel();
  }
  for (std::size_t kind = 0; kind < looks.size(); ++kind) {
    if (!verb.empty() && command_table()[kind].verb != verb) continue;
    if (read_job_kind == kind) look_progress->cancel();
    looks[kind].reset();  // a continued look may be between two steps
  }
}

void Session::State::each_job(const std::string& verb, void (RunningJob::*what)()) {
  {
    std::lock_guard lock(mutex);
    if (job && has_verb(job->command, verb)) ((*job).*what)();
    for (RunningJob& each : concurrent) {
      if (has_verb(each.command, verb)) (each.*what)();
    }
  }
  changed.notify_all();
}

namespace {

// Errors, warnings or hints, clean, or undecided.
RecentVerdict verdict_of_check(const Snapshot& snapshot) {
  const CheckReport& report = *snapshot.report;
  const bool is_error =
      std::any_of(report.findings.begin(), report.findings.end(),
                  [](const Finding& finding) { return finding.severity == Severity::kError; });
  const bool is_clean =
      report.verdict == Verdict::kClean && rules_with_hints(report.unjudged).empty();
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  return {
      report.verdict == Verdict::kUndecided ? "undecided"
      : is_error                            ? "findings"
      : is_clean                            ? "clean"
                                            : "warnings",
      check_headline(checkpoint, report, count_affected_by_findings(checkpoint, report.findings))};
}

}  // namespace

// Errors are ignored, because nothing depends on this file.
void Session::State::remember() {
  auto snapshot_now = now();
  if (recent_file.empty() || snapshot_now->report == nullptr) return;
  const VerbOptions& verb_options = snapshot_now->options;
  // A recent place may be opened from another folder.
  auto absolute = [](const std::string& path) {
    return path.empty() ? path : posix_store().resolved(path).value_or(path);
  };
  verbs::RecentPlace place{
      posix_store().resolved(verb_options.checkpoint).value_or(verb_options.checkpoint),
      absolute(verb_options.spec), absolute(verb_options.against), verb_options.mesh};
  RecentVerdict shown =
      verdict_to_remember ? verdict_to_remember(*snapshot_now) : verdict_of_check(*snapshot_now);
  place.verdict = std::move(shown.verdict);
  place.summary = std::move(shown.summary);
  // Reads the file again: other windows, and the tabs of this one, may have written it meanwhile.
  static std::mutex one_tab_at_a_time;
  const std::lock_guard lock(one_tab_at_a_time);
  auto places = verbs::with_place(verbs::read_recent(recent_file), std::move(place));
  (void)verbs::write_recent(posix_store(), recent_file, places);
  publish([&](Snapshot& s) {
    s.recent = std::make_shared<const verbs::RecentPlaces>(std::move(places));
  });
}

void Session::State::inspect_partial_folders(const Command& command) {
  auto before = now();
  if (before->checkpoint == nullptr) return;
  std::string out = before->target ? before->target->typed_path : std::string();
  if (const auto* repair = std::get_if<RepairCommand>(&command)) out = repair->options.out;
  auto looked = run_target(*before, TargetCommand{out}, nullptr);
  auto stopped = search_stopped_runs(*before, verbs::expanded_path(out));
  publish([&](Snapshot& s) {
    if (looked) (*looked)(s);
    if (s.checkpoint == before->checkpoint) s.stopped = stopped;
  });
}

}  // namespace shw
