// Three threads of its own: one for the long jobs, in order; one for the list (filter and sort), so
// that typing never waits for a repair; one that looks into files. All publish new snapshots;
// nobody ever waits for them but wait().
#include "core/session/session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/words.h"
#include "core/io/store.h"
#include "core/session/command_run.h"
#include "core/session/history.h"
#include "core/session/look_run.h"
#include "core/verbs/filter.h"
#include "core/verbs/sort.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNoticed = 0.3;  // seconds

template <class T>
std::shared_ptr<const T> shared_value(T&& value) {
  return std::make_shared<const T>(std::move(value));
}

}  // namespace

struct Session::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();
  std::function<void()> callback;
  bool stopping = false;

  std::deque<Command> jobs;
  bool job_running = false, job_is_quick = false;
  std::string job_title;
  Clock::time_point job_begin;
  // Of the phase that was seen last, by those who ask.
  Phase seen_phase = Phase::kIdle;
  Clock::time_point phase_begin;
  bool seen_proof = false;
  Clock::time_point pause_begin;
  std::shared_ptr<Progress> job_progress = std::make_shared<Progress>();

  History history;
  std::string recent_file;  // empty: nothing is remembered

  std::string filter;
  SortCommand sort;
  bool list_wanted = false, list_running = false;
  std::shared_ptr<Progress> list_progress = std::make_shared<Progress>();

  std::array<std::optional<Command>, std::variant_size_v<Command>> looks;  // the newest of a kind
  std::size_t look_kind = 0;
  bool look_running = false;
  std::shared_ptr<Progress> look_progress = std::make_shared<Progress>();

  std::thread job_thread, list_thread, look_thread;

  // Every change to the snapshot goes through here; `change` works on a copy.
  template <class Change>
  void publish(Change change) {
    std::function<void()> notify;
    {
      std::lock_guard lock(mutex);
      auto next = std::make_shared<Snapshot>(*snapshot);
      change(*next);
      if (auto visit = visit_of(*next)) history.note(*visit);
      next->can_go_back = history.can_go(-1);
      next->can_go_forward = history.can_go(1);
      ++next->revision;
      snapshot = std::move(next);
      notify = callback;
    }
    changed.notify_all();
    if (notify) notify();
  }

  std::shared_ptr<const Snapshot> now() const {
    std::lock_guard lock(mutex);
    return snapshot;
  }

  void publish_error(Error error) {
    publish([&](Snapshot& s) { s.error = std::move(error); });
  }

  void want_list() {
    {
      std::lock_guard lock(mutex);
      list_wanted = true;
      list_progress->cancel();  // a running one works on an older text
    }
    changed.notify_all();
  }

  void want_look(const Command& command) {
    {
      std::lock_guard lock(mutex);
      looks[command.index()] = command;
      if (look_running && look_kind == command.index()) look_progress->cancel();
    }
    changed.notify_all();
  }
  bool look_wanted() const {
    return std::any_of(looks.begin(), looks.end(), [](const auto& look) { return look; });
  }

  // Under the lock. Time that was spent paused counts for nothing.
  Clock::time_point job_now() const { return job_progress->paused ? pause_begin : Clock::now(); }
  void pause_job() {
    if (!job_running || job_progress->paused || job_progress->cancelled) return;
    pause_begin = Clock::now();
    job_progress->pause();
  }
  void let_job_go_on() {
    if (!job_progress->paused) return;
    Clock::duration held = Clock::now() - pause_begin;
    job_begin += held;
    phase_begin += held;
    job_progress->go_on();
  }

  void run_jobs();
  void run_list();
  void run_looks();
  void carry_out(const Command& command, Progress* progress);
  void look_at_what_is_left(const Command& command);
  bool apply_now(const Command& command);
  void go(int step);
  void remember();
};

void Session::State::carry_out(const Command& command, Progress* progress) {
  // The old checkpoint stays until the new one is there, and for good where it cannot be opened.
  const auto* open = std::get_if<OpenCommand>(&command);
  if (open != nullptr && now()->checkpoint == nullptr)
    publish([&](Snapshot& s) { s.said.checkpoint = open->path; });
  bool repairs = std::holds_alternative<RepairCommand>(command) ||
                 std::holds_alternative<ResumeCommand>(command);
  // What is finished when it is stopped stays, and can be gone on with.
  if (repairs && progress != nullptr) progress->keeps = true;
  auto change = row_of(command).run(*now(), command, progress);
  if (!change) {
    if (repairs) look_at_what_is_left(command);
    Error error = std::move(change).error();
    if (open != nullptr && error.place.file.empty()) error.place.file = open->path;
    if (open != nullptr) {
      std::lock_guard lock(mutex);
      history.stay();
    }
    return publish_error(std::move(error));
  }
  publish(*change);
  // Terms like finding:* look at the report.
  if (row_of(command).lane == Lane::kJob) want_list();
  if (std::holds_alternative<CheckCommand>(command)) remember();
}

// A file that cannot be written is not worth a word: nothing of the work depends on it.
void Session::State::remember() {
  auto snapshot_now = now();
  if (recent_file.empty() || snapshot_now->report == nullptr) return;
  const VerbOptions& said = snapshot_now->said;
  const CheckReport& report = *snapshot_now->report;
  verbs::RecentPlace place{posix_store().resolved(said.checkpoint).value_or(said.checkpoint),
                           said.spec, said.against, said.mesh};
  place.verdict = report.verdict == Verdict::kClean      ? "clean"
                  : report.verdict == Verdict::kFindings ? "findings"
                                                         : "undecided";
  place.summary = plural(report.findings.size(), "finding") + ", " +
                  plural(snapshot_now->checkpoint->tensor_count(), "tensor");
  // Another window may have written meanwhile.
  auto places = verbs::with_place(verbs::read_recent(recent_file), std::move(place));
  (void)verbs::write_recent(posix_store(), recent_file, places);
  publish([&](Snapshot& s) {
    s.recent = std::make_shared<const verbs::RecentPlaces>(std::move(places));
  });
}

// Inside of one checkpoint at once; another one is opened, and checked as any other.
void Session::State::go(int step) {
  std::optional<Visit> to, from;
  {
    std::lock_guard lock(mutex);
    from = visit_of(*snapshot);
    to = history.go(step);
    if (to && !(from && to->same_checkpoint(*from))) {
      jobs.push_back(OpenCommand{to->path, to->spec, to->against, to->mesh, to->fqn});
      jobs.push_back(CheckCommand{});
      to.reset();
    }
  }
  if (to)
    publish([&](Snapshot& s) {
      s.tensor = s.checkpoint->find(to->fqn);
      s.chunk.reset();
    });
  else
    changed.notify_all();
}

void Session::State::look_at_what_is_left(const Command& command) {
  auto before = now();
  if (before->checkpoint == nullptr) return;
  std::string out = before->target ? before->target->said : std::string();
  if (const auto* repair = std::get_if<RepairCommand>(&command)) out = repair->options.out;
  auto looked = run_target(*before, TargetCommand{out}, nullptr);
  if (looked) publish(*looked);
}

void Session::State::run_jobs() {
  while (true) {
    Command command;
    std::shared_ptr<Progress> progress;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !jobs.empty(); });
      if (stopping) return;
      command = std::move(jobs.front());
      jobs.pop_front();
      job_running = true;
      job_title = row_of(command).title;
      if (const auto* open = std::get_if<OpenCommand>(&command)) job_title += " " + open->path;
      job_is_quick = row_of(command).lane == Lane::kQuick;
      job_begin = phase_begin = Clock::now();
      seen_phase = Phase::kIdle;
      seen_proof = false;
      bool held = job_progress->paused;  // what was paused goes on with the next command
      pause_begin = job_begin;
      job_progress = std::make_shared<Progress>();
      if (held) job_progress->pause();
      progress = job_progress;
    }
    publish([](Snapshot& s) { s.error.reset(); });
    carry_out(command, progress.get());
    {
      std::lock_guard lock(mutex);
      job_running = false;
      if (jobs.empty()) job_progress->go_on();  // it came to its end before it could be held
      // What was asked for after a command that failed was meant for its result: open, check, plan
      // in a row.
      if (snapshot->error) jobs.clear();
    }
    publish([](Snapshot&) {});
  }
}

void Session::State::run_list() {
  while (true) {
    std::shared_ptr<const Snapshot> before;
    std::shared_ptr<Progress> progress;
    std::string text;
    SortCommand wanted;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || list_wanted; });
      if (stopping) return;
      list_wanted = false;
      list_running = true;
      list_progress = std::make_shared<Progress>();
      progress = list_progress;
      before = snapshot;
      text = filter;
      wanted = sort;
    }
    if (before->checkpoint != nullptr) {
      auto order = filter_tensors(*before->checkpoint, before->report.get(), text, progress.get());
      if (order) {
        sort_tensors(*before->checkpoint, before->report.get(), wanted.key, wanted.descending,
                     *order);
        publish([&](Snapshot& s) {
          if (s.checkpoint != before->checkpoint)
            return;  // another one was opened meanwhile: its own list is on the way
          s.order = std::make_shared<const std::vector<std::uint32_t>>(std::move(*order));
          s.filter = text;
        });
      }
    }
    {
      std::lock_guard lock(mutex);
      list_running = false;
    }
    changed.notify_all();
  }
}

void Session::State::run_looks() {
  while (true) {
    Command command;
    std::shared_ptr<const Snapshot> before;
    std::shared_ptr<Progress> progress;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || look_wanted(); });
      if (stopping) return;
      auto wanted = std::find_if(looks.begin(), looks.end(), [](const auto& look) { return look; });
      command = std::move(**wanted);
      wanted->reset();
      look_running = true;
      look_kind = command.index();
      look_progress = std::make_shared<Progress>();
      progress = look_progress;
      before = snapshot;
    }
    // What was opened meanwhile has its own files: the look is dropped with what it looked at.
    auto change = row_of(command).run(*before, command, progress.get());
    if (change)
      publish([&](Snapshot& s) {
        if (s.checkpoint == before->checkpoint) (*change)(s);
      });
    {
      std::lock_guard lock(mutex);
      look_running = false;
      auto& next = looks[command.index()];
      bool goes_on = change && !is_cancelled(progress.get()) && !next;
      if (goes_on && sees_more(*snapshot, command)) next = command;
    }
    changed.notify_all();
  }
}

// False for the long ones, which wait for their turn.
bool Session::State::apply_now(const Command& command) {
  switch (row_of(command).lane) {
    case Lane::kJob:
    case Lane::kQuick:
      return false;
    case Lane::kList: {
      {
        std::lock_guard lock(mutex);
        if (const auto* wanted = std::get_if<FilterCommand>(&command)) filter = wanted->text;
        if (const auto* wanted = std::get_if<SortCommand>(&command)) sort = *wanted;
      }
      want_list();
      return true;
    }
    case Lane::kLook:
      want_look(command);
      return true;
    case Lane::kNow:
      break;
  }
  if (const auto* step = std::get_if<GoCommand>(&command)) {
    go(step->step);
  } else if (std::holds_alternative<CancelCommand>(command)) {
    std::lock_guard lock(mutex);
    jobs.clear();
    let_job_go_on();
    job_progress->cancel();
    look_progress->cancel();
    looks.fill(std::nullopt);  // one that goes on may stand between two of its steps
  } else if (std::holds_alternative<PauseCommand>(command)) {
    {
      std::lock_guard lock(mutex);
      pause_job();
    }
    changed.notify_all();
  } else if (std::holds_alternative<ContinueCommand>(command)) {
    std::lock_guard lock(mutex);
    let_job_go_on();
  } else {
    carry_out(command, nullptr);
  }
  return true;
}

Session::Session() : state_(std::make_unique<State>()) {
  state_->job_thread = std::thread([state = state_.get()] { state->run_jobs(); });
  state_->list_thread = std::thread([state = state_.get()] { state->run_list(); });
  state_->look_thread = std::thread([state = state_.get()] { state->run_looks(); });
}

Session::~Session() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->callback = nullptr;
    state_->job_progress->cancel();
    state_->list_progress->cancel();
    state_->look_progress->cancel();
  }
  state_->changed.notify_all();
  state_->job_thread.join();
  state_->list_thread.join();
  state_->look_thread.join();
}

void Session::apply(Command command) {
  std::vector<Command> one;
  one.push_back(std::move(command));
  apply(std::move(one));
}

void Session::apply(std::vector<Command> commands) {
  std::deque<Command> jobs;
  for (Command& command : commands) {
    if (std::holds_alternative<CancelCommand>(command)) jobs.clear();
    if (!state_->apply_now(command)) jobs.push_back(std::move(command));
  }
  {
    std::lock_guard lock(state_->mutex);
    std::move(jobs.begin(), jobs.end(), std::back_inserter(state_->jobs));
  }
  state_->changed.notify_all();
}

void Session::remember_in(std::string file) {
  auto recent = std::make_shared<const verbs::RecentPlaces>(verbs::read_recent(file));
  {
    std::lock_guard lock(state_->mutex);
    state_->recent_file = std::move(file);
  }
  state_->publish([&](Snapshot& s) { s.recent = recent; });
}

void Session::wait() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] {
    bool jobs_done = state.jobs.empty() && !state.job_running;
    return (jobs_done || state.job_progress->paused) && !state.list_wanted && !state.list_running &&
           !state.look_wanted() && !state.look_running;
  });
}

std::shared_ptr<const Snapshot> Session::snapshot() const {
  return state_->now();
}

void Session::note_phase(State& state, JobState& job) {
  Clock::time_point now = state.job_now();
  if (job.phase != state.seen_phase) {
    state.seen_phase = job.phase;
    state.phase_begin = now;
  }
  state.seen_proof = state.seen_proof || job.phase == Phase::kVerifying;
  job.past_proof = state.seen_proof && job.phase != Phase::kVerifying;
  job.phase_seconds = std::chrono::duration<double>(now - state.phase_begin).count();
}

JobState Session::job() const {
  std::lock_guard lock(state_->mutex);
  const Progress& progress = *state_->job_progress;
  JobState job;
  job.seconds = state_->job_running
                    ? std::chrono::duration<double>(state_->job_now() - state_->job_begin).count()
                    : 0;
  job.running = state_->job_running && (!state_->job_is_quick || job.seconds > kNoticed);
  job.stopping = job.running && progress.cancelled;
  job.paused = job.running && progress.paused;
  note_phase(*state_, job);
  for (std::size_t i = 0; i < kStages; ++i)
    job.stages[i] = {progress.stages[i].bytes,
                     static_cast<double>(progress.stages[i].nanoseconds) * 1e-9};
  job.title = state_->job_title;
  job.phase = progress.phase;
  job.done = progress.done;
  job.total = progress.total;
  job.in_bytes = progress.in_bytes;
  job.looking = state_->look_running || state_->look_wanted();
  job.looked = state_->look_progress->done;
  job.to_look = state_->look_progress->total;
  return job;
}

void Session::on_change(std::function<void()> callback) {
  std::lock_guard lock(state_->mutex);
  state_->callback = std::move(callback);
}

}  // namespace shw
