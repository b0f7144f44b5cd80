// Two threads of its own: one for the long jobs, in order; one for the list (filter and sort), so
// that typing never waits for a repair. Both publish new snapshots; nobody ever waits for them but
// wait().
#include "core/session/session.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>

#include "core/formats/open.h"
#include "core/session/sort.h"
#include "core/verbs/filter.h"

namespace shw {
namespace {

using Clock = std::chrono::steady_clock;

const char* title_of(const Command& command) {
  struct {
    const char* operator()(const OpenCommand&) { return "Opening"; }
    const char* operator()(const CheckCommand&) { return "Checking"; }
    const char* operator()(const MeshCommand&) { return "Reading the mesh"; }
    const char* operator()(const PlanCommand&) { return "Planning"; }
    const char* operator()(const RepairCommand&) { return "Repairing"; }
    const char* operator()(const VerifyCommand&) { return "Verifying"; }
    const char* operator()(const UndoCommand&) { return "Taking the repair back"; }
    const char* operator()(const SelectTensorCommand&) { return ""; }
    const char* operator()(const SelectChunkCommand&) { return ""; }
    const char* operator()(const SelectFindingCommand&) { return ""; }
    const char* operator()(const FilterCommand&) { return "Filtering"; }
    const char* operator()(const SortCommand&) { return "Sorting"; }
    const char* operator()(const CancelCommand&) { return ""; }
  } titles;
  return std::visit(titles, command);
}

template <class T>
std::shared_ptr<const T> shared(T&& value) {
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
  bool job_running = false;
  std::string job_title;
  Clock::time_point job_begin;
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
  void select(const Command& command);
  bool apply_now(const Command& command);

  void run(const OpenCommand& command, Progress* progress);
  void run(const CheckCommand& command, Progress* progress);
  void run(const MeshCommand& command, Progress* progress);
  void run(const PlanCommand& command, Progress* progress);
  void run(const RepairCommand& command, Progress* progress);
  void run(const VerifyCommand& command, Progress* progress);
  void run(const UndoCommand& command, Progress* progress);
};

void Session::State::run(const OpenCommand& command, Progress* progress) {
  publish([&](Snapshot& s) {
    std::uint64_t revision = s.revision;
    s = Snapshot{};
    s.revision = revision;
    s.path = command.path;
  });
  auto opened = open_checkpoint(command.path, progress);
  if (!opened) return publish_error(opened.error());
  std::shared_ptr<const Spec> spec;
  if (!command.spec.empty()) {
    auto loaded = load_spec(command.spec);
    if (!loaded) return publish_error(loaded.error());
    spec = shared(std::move(*loaded));
  }
  std::shared_ptr<const Checkpoint> reference;
  if (!command.against.empty()) {
    auto other = open_checkpoint(command.against, progress);
    if (!other) return publish_error(other.error());
    reference = *other;
  }
  publish([&](Snapshot& s) {
    s.checkpoint = *opened;
    s.spec = spec;
    s.reference = reference;
    s.against = command.against;
  });
  want_list();
}

void Session::State::run(const CheckCommand& command, Progress* progress) {
  auto before = now();
  if (before->checkpoint == nullptr) return publish_error({ErrorKind::kUsage, "nothing is open"});
  CheckOptions options;
  options.depth = command.depth;
  options.spec = before->spec;
  options.mesh = before->mesh;
  options.reference = before->reference;
  auto report = check(*before->checkpoint, options, progress);
  if (!report) return publish_error(report.error());
  publish([&](Snapshot& s) {
    s.report = shared(std::move(*report));
    s.plan = nullptr;
    if (!s.report->findings.empty() && s.report->findings.front().severity != Severity::kInfo)
      s.finding = 0;
    if (s.finding && !s.tensor) {
      for (const std::string& subject : s.report->findings.front().subjects) {
        if ((s.tensor = s.checkpoint->find(subject))) break;
      }
    }
  });
  want_list();
}

// What the person says about the ranks changes what the rules may conclude: the old report goes.
void Session::State::run(const MeshCommand& command, Progress*) {
  std::optional<Mesh> mesh;
  if (!command.text.empty()) {
    auto parsed = parse_mesh(command.text);
    if (!parsed) return publish_error(parsed.error());
    mesh = std::move(*parsed);
  }
  publish([&](Snapshot& s) {
    s.mesh = mesh;
    s.report = nullptr;
    s.plan = nullptr;
    s.finding.reset();
  });
}

void Session::State::run(const PlanCommand& command, Progress* progress) {
  auto before = now();
  if (before->report == nullptr)
    return publish_error({ErrorKind::kUsage, "check it first: a plan is made from findings"});
  PlanOptions options;
  options.spec = before->report->spec;
  options.mesh = before->mesh;
  if (auto chosen = choose_fill(command.fill, options, progress); !chosen)
    return publish_error(chosen.error());
  auto plan = make_plan(*before->checkpoint, *before->report, options);
  if (!plan) return publish_error(plan.error());
  publish([&](Snapshot& s) {
    s.plan = shared(std::move(*plan));
    s.fill = command.fill;
  });
}

void Session::State::run(const RepairCommand& command, Progress* progress) {
  auto before = now();
  if (before->plan == nullptr) return publish_error({ErrorKind::kUsage, "plan it first"});
  auto result = apply_plan(*before->checkpoint, *before->plan, command.options, progress);
  if (!result) return publish_error(result.error());
  auto after = open_checkpoint(result->output, progress);
  if (!after) return publish_error(after.error());
  publish([&](Snapshot& s) {
    s.repaired = shared(std::move(*result));
    s.after = *after;
    s.verified = nullptr;
  });
}

void Session::State::run(const VerifyCommand&, Progress* progress) {
  auto before = now();
  auto report = verify_repair(before->repaired ? before->repaired->output : before->path, progress);
  if (!report) return publish_error(report.error());
  publish([&](Snapshot& s) { s.verified = shared(std::move(*report)); });
}

void Session::State::run(const UndoCommand&, Progress* progress) {
  auto before = now();
  if (auto undone = undo_repair(before->path); !undone) return publish_error(undone.error());
  run(OpenCommand{before->path, before->spec ? before->spec->source : "", before->against},
      progress);
}

void Session::State::carry_out(const Command& command, Progress* progress) {
  std::visit(
      [&](const auto& c) {
        if constexpr (requires { run(c, progress); }) run(c, progress);
      },
      command);
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
      job_title = title_of(command);
      job_begin = Clock::now();
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
        sort_tensors(*before->checkpoint, before->report.get(), wanted, *order);
        publish([&](Snapshot& s) {
          if (s.checkpoint != before->checkpoint)
            return;  // another one was opened meanwhile: its own list is on the way
          s.order = shared(std::move(*order));
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

// The cheap commands: a change of the selection.
void Session::State::select(const Command& command) {
  publish([&](Snapshot& s) {
    if (const auto* c = std::get_if<SelectTensorCommand>(&command);
        c != nullptr && s.checkpoint != nullptr) {
      auto found = s.checkpoint->find(c->fqn);
      if (!found) {
        s.error = Error{ErrorKind::kUsage, "no such tensor", {"", std::nullopt, c->fqn}};
        return;
      }
      s.tensor = found;
      s.chunk.reset();
    }
    if (const auto* c = std::get_if<SelectChunkCommand>(&command);
        c != nullptr && s.checkpoint != nullptr) {
      s.chunk =
          c->chunk && index_of(*c->chunk) < s.checkpoint->chunk_count() ? c->chunk : std::nullopt;
    }
    if (const auto* c = std::get_if<SelectFindingCommand>(&command);
        c != nullptr && s.report != nullptr) {
      if (c->index >= s.report->findings.size()) return;
      s.finding = c->index;
      for (const std::string& subject : s.report->findings[c->index].subjects) {
        if (auto tensor = s.checkpoint->find(subject)) {
          s.tensor = tensor;
          s.chunk.reset();
          break;
        }
      }
    }
  });
}

// False for the long ones, which wait for their turn.
bool Session::State::apply_now(const Command& command) {
  if (std::holds_alternative<CancelCommand>(command)) {
    std::lock_guard lock(mutex);
    jobs.clear();
    job_progress->cancel();
  } else if (std::holds_alternative<SelectTensorCommand>(command) ||
             std::holds_alternative<SelectChunkCommand>(command) ||
             std::holds_alternative<SelectFindingCommand>(command)) {
    select(command);
  } else if (std::holds_alternative<FilterCommand>(command) ||
             std::holds_alternative<SortCommand>(command)) {
    {
      std::lock_guard lock(mutex);
      if (const auto* wanted = std::get_if<FilterCommand>(&command)) filter = wanted->text;
      if (const auto* wanted = std::get_if<SortCommand>(&command)) sort = *wanted;
    }
    want_list();
  } else {
    return false;
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

JobState Session::job() const {
  std::lock_guard lock(state_->mutex);
  const Progress& progress = *state_->job_progress;
  JobState job;
  job.running = state_->job_running;
  job.title = state_->job_title;
  job.phase = progress.phase;
  job.done = progress.done;
  job.total = progress.total;
  job.in_bytes = progress.in_bytes;
  job.seconds = state_->job_running
                    ? std::chrono::duration<double>(Clock::now() - state_->job_begin).count()
                    : 0;
  return job;
}

void Session::on_change(std::function<void()> callback) {
  std::lock_guard lock(state_->mutex);
  state_->callback = std::move(callback);
}

}  // namespace shw
