// Entry point of commands, and immediate execution.
#include "core/session/session.h"

#include <algorithm>

#include "core/base/threads.h"
#include "core/session/session_state.h"

namespace shw {

// Within a checkpoint at once; another checkpoint is opened and checked.
void Session::State::go(int step) {
  std::optional<Visit> to, from;
  {
    std::lock_guard lock(mutex);
    from = visit_of(*snapshot);
    to = history.go(step);
    if (to && !(from && to->same_checkpoint(*from))) {
      const std::uint64_t group = ++last_group;
      jobs.push_back({OpenCommand{to->path, to->spec, to->against, to->mesh, to->fqn}, group});
      jobs.push_back({CheckCommand{}, group});
      to.reset();
    }
  }
  if (to)
    publish([&](Snapshot& s) {
      s.tensor.reset();
      if (!to->fqn.empty()) s.tensor = s.checkpoint->find(to->fqn);
      s.chunk.reset();
    });
  else
    changed.notify_all();
}

// False for long commands, which are queued.
bool Session::State::apply_now(const Command& command) {
  switch (row_of(command).lane) {
    case Lane::kJob:
    case Lane::kQuick:
    case Lane::kConcurrent:
      return false;
    case Lane::kList: {
      {
        std::lock_guard lock(mutex);
        if (const auto* wanted = std::get_if<FilterCommand>(&command)) filter = wanted->text;
        if (const auto* wanted = std::get_if<SortCommand>(&command)) sort = *wanted;
      }
      request_list();
      return true;
    }
    case Lane::kLook:
      request_inspection(command);
      return true;
    case Lane::kNow:
      break;
  }
  if (const auto* step = std::get_if<GoCommand>(&command)) {
    go(step->step);
  } else if (const auto* stop = std::get_if<CancelCommand>(&command)) {
    cancel(stop->verb);
  } else if (const auto* hold = std::get_if<PauseCommand>(&command)) {
    each_job(hold->verb, &RunningJob::pause);
  } else if (const auto* release = std::get_if<ContinueCommand>(&command)) {
    each_job(release->verb, &RunningJob::go_on);
  } else {
    run_now(command);
  }
  return true;
}

Session::Session() : state_(std::make_unique<State>()) {
  State* state = state_.get();
  const bool is_complete = start_thread(state->job_thread, [state] { state->run_jobs(); }) &&
                           start_thread(state->list_thread, [state] { state->run_list(); }) &&
                           start_thread(state->look_thread, [state] { state->run_inspections(); });
  if (is_complete) return;
  state->publish_error("",
                       {ErrorKind::kIo,
                        "the system refuses to start more threads",
                        {},
                        "raise the limit on processes (`ulimit -u`, or that of the container)"});
}

Session::~Session() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->callback = nullptr;
    state_->jobs.clear();
    if (state_->job) state_->job->cancel();
    for (RunningJob& each : state_->concurrent) each.cancel();
    state_->list_progress->cancel();
    state_->look_progress->cancel();
  }
  state_->changed.notify_all();
  if (state_->job_thread.joinable()) state_->job_thread.join();
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->concurrent.empty(); });
  }
  state_->join_ended();
  if (state_->list_thread.joinable()) state_->list_thread.join();
  if (state_->look_thread.joinable()) state_->look_thread.join();
}

void Session::apply(Command command) {
  std::vector<Command> one;
  one.push_back(std::move(command));
  apply(std::move(one));
}

void Session::apply(std::vector<Command> commands) {
  std::deque<Command> jobs;
  for (Command& command : commands) {
    command = without_passwords(std::move(command));
    if (std::holds_alternative<CancelCommand>(command)) jobs.clear();
    if (!state_->apply_now(command)) jobs.push_back(std::move(command));
  }
  state_->queue(std::move(jobs));
}

void Session::set_recent_places_file(std::string file, MakeRecentVerdict verdict) {
  auto recent = std::make_shared<const verbs::RecentPlaces>(verbs::read_recent(file));
  {
    std::lock_guard lock(state_->mutex);
    state_->recent_file = std::move(file);
    state_->verdict_to_remember = std::move(verdict);
  }
  state_->publish([&](Snapshot& s) { s.recent = recent; });
}

void Session::set_gpu_detection(std::function<Gpus()> gpus) {
  state_->publish([&](Snapshot& s) { s.gpus = std::move(gpus); });
}

void Session::wait() {
  State& state = *state_;
  if (!state.look_thread.joinable()) return;  // no thread available: ignored
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] {
    bool rests = state.job ? state.job->progress->paused.load() : state.jobs.empty();
    for (const RunningJob& each : state.concurrent) rests = rests && each.progress->paused;
    return rests && !state.list_wanted && !state.list_running && !state.inspection_wanted() &&
           !state.look_running;
  });
}

std::shared_ptr<const Snapshot> Session::snapshot() const {
  return state_->now();
}

JobState Session::job() const {
  std::lock_guard lock(state_->mutex);
  JobState job = state_->job ? state_->job->state() : JobState{};
  job.looking = state_->look_running || state_->inspection_wanted();
  job.looked = state_->look_progress->done;
  job.to_look = state_->look_progress->total;
  return job;
}

std::vector<JobState> Session::concurrent_jobs() const {
  std::lock_guard lock(state_->mutex);
  std::vector<JobState> jobs;
  for (RunningJob& each : state_->concurrent) jobs.push_back(each.state());
  return jobs;
}

void Session::on_change(std::function<void()> callback) {
  std::lock_guard lock(state_->mutex);
  state_->callback = std::move(callback);
}

}  // namespace shw
