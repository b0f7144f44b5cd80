// Two threads of its own: one for the long jobs, in order; one for the list (filter and sort), so
// that typing never waits for a repair. Both publish new snapshots; nobody ever waits for them but
// wait().
#include "core/session/session.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>

#include "core/session/command_run.h"
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
  std::shared_ptr<Progress> job_progress = std::make_shared<Progress>();

  std::string filter;
  SortCommand sort;
  bool list_wanted = false, list_running = false;
  std::shared_ptr<Progress> list_progress = std::make_shared<Progress>();

  std::thread job_thread, list_thread;

  // Every change to the snapshot goes through here; `change` works on a copy.
  template <class Change>
  void publish(Change change) {
    std::function<void()> notify;
    {
      std::lock_guard lock(mutex);
      auto next = std::make_shared<Snapshot>(*snapshot);
      change(*next);
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

  void run_jobs();
  void run_list();
  void carry_out(const Command& command, Progress* progress);
  void look_at_what_is_left(const Command& command);
  bool apply_now(const Command& command);
};

void Session::State::carry_out(const Command& command, Progress* progress) {
  // While another checkpoint is being opened, the old one is no longer what is looked at.
  if (const auto* open = std::get_if<OpenCommand>(&command)) {
    publish([&](Snapshot& s) {
      s = blank(s.revision);
      s.said.checkpoint = open->path;
    });
  }
  bool repairs = std::holds_alternative<RepairCommand>(command) ||
                 std::holds_alternative<ResumeCommand>(command);
  // What is finished when it is stopped stays, and can be gone on with.
  if (repairs && progress != nullptr) progress->keeps = true;
  auto change = row_of(command).run(*now(), command, progress);
  if (!change) {
    if (repairs) look_at_what_is_left(command);
    return publish_error(change.error());
  }
  publish(*change);
  // Terms like finding:* look at the report.
  if (row_of(command).lane == Lane::kJob) want_list();
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
      job_is_quick = row_of(command).lane == Lane::kQuick;
      job_begin = phase_begin = Clock::now();
      seen_phase = Phase::kIdle;
      seen_proof = false;
      job_progress = std::make_shared<Progress>();
      progress = job_progress;
    }
    publish([](Snapshot& s) { s.error.reset(); });
    carry_out(command, progress.get());
    {
      std::lock_guard lock(mutex);
      job_running = false;
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
    case Lane::kNow:
      break;
  }
  if (std::holds_alternative<CancelCommand>(command)) {
    std::lock_guard lock(mutex);
    jobs.clear();
    job_progress->cancel();
  } else {
    carry_out(command, nullptr);
  }
  return true;
}

Session::Session() : state_(std::make_unique<State>()) {
  state_->job_thread = std::thread([state = state_.get()] { state->run_jobs(); });
  state_->list_thread = std::thread([state = state_.get()] { state->run_list(); });
}

Session::~Session() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->callback = nullptr;
    state_->job_progress->cancel();
    state_->list_progress->cancel();
  }
  state_->changed.notify_all();
  state_->job_thread.join();
  state_->list_thread.join();
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

void Session::wait() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] {
    return state.jobs.empty() && !state.job_running && !state.list_wanted && !state.list_running;
  });
}

std::shared_ptr<const Snapshot> Session::snapshot() const {
  return state_->now();
}

void Session::note_phase(State& state, JobState& job) {
  Clock::time_point now = Clock::now();
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
                    ? std::chrono::duration<double>(Clock::now() - state_->job_begin).count()
                    : 0;
  job.running = state_->job_running && (!state_->job_is_quick || job.seconds > kNoticed);
  job.stopping = job.running && progress.cancelled;
  note_phase(*state_, job);
  for (std::size_t i = 0; i < kStages; ++i)
    job.stages[i] = {progress.stages[i].bytes,
                     static_cast<double>(progress.stages[i].nanoseconds) * 1e-9};
  job.title = state_->job_title;
  job.phase = progress.phase;
  job.done = progress.done;
  job.total = progress.total;
  job.in_bytes = progress.in_bytes;
  return job;
}

void Session::on_change(std::function<void()> callback) {
  std::lock_guard lock(state_->mutex);
  state_->callback = std::move(callback);
}

}  // namespace shw
