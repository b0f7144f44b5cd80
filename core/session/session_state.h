// The state of a Session, shared by its threads: one for long jobs in order, one
// per concurrent read-only job, one for the list (filter and sort), so that typing
// never waits, and one for file contents. All publish new snapshots; only wait()
// blocks.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "core/session/history.h"
#include "core/session/session.h"

namespace shw {

// A running job. Its clock stops while it is paused.
struct RunningJob {
  using Clock = std::chrono::steady_clock;
  Command command;
  std::string title;
  bool is_quick = false;
  bool changes_open = false;  // writes the files of the open checkpoint
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  Clock::time_point begin = Clock::now(), pause_begin = begin;
  // begin of the phase seen last, for callers of job()
  Clock::time_point phase_begin = begin;
  Phase seen_phase = Phase::kIdle;
  bool seen_proof = false;
  std::uint64_t seen_done = 0, bytes_before = 0;  // of the phase seen last, and of those before it
  bool seen_in_bytes = false;
  double part_before = 0, part = 0;

  std::thread thread = {};   // of a concurrent job
  bool is_replaced = false;  // replaced by a newer job of its kind

  explicit RunningJob(Command what);
  Clock::time_point now() const { return progress->paused ? pause_begin : Clock::now(); }
  void pause();
  void go_on();
  void cancel();
  JobState state();
  void follow(JobState& job, bool is_new_phase);  // totals that only grow
};

// True if the result of a command still belongs to what is shown.
bool is_still_viewed(const Snapshot& now, const Snapshot& before, const Command& command);

// Commands that were given together depend on each other.
struct QueuedCommand {
  Command command;
  std::uint64_t group = 0;
};

struct Session::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const Snapshot> snapshot = std::make_shared<const Snapshot>();
  std::function<void()> callback;
  bool stopping = false;

  std::deque<QueuedCommand> jobs;    // waiting
  std::uint64_t last_group = 0;      // of commands
  std::optional<RunningJob> job;     // on the thread of long jobs
  std::uint64_t job_group = 0;       // of `job`
  bool starts_next_paused = false;   // the last job ended while paused: the next one starts paused
  std::list<RunningJob> concurrent;  // a thread each
  std::vector<std::thread> ended;    // threads of ended concurrent jobs, not yet joined

  History history;
  std::string recent_file;  // empty: not kept
  MakeRecentVerdict verdict_to_remember;

  std::string filter;
  SortCommand sort;
  bool list_wanted = false, list_running = false;
  std::shared_ptr<Progress> list_progress = std::make_shared<Progress>();

  std::array<std::optional<Command>, std::variant_size_v<Command>> looks;  // latest of each kind
  std::size_t read_job_kind = 0;
  bool look_running = false;
  std::shared_ptr<Progress> look_progress = std::make_shared<Progress>();

  std::thread job_thread, list_thread, look_thread;

  // Applies `change` to a copy of the snapshot and publishes it; the only way to change it.
  template <class Make>
  void publish(Make change) {
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
  void publish_error(std::string_view verb, Error error) {
    publish([&](Snapshot& s) { set_error(s, verb, std::move(error)); });
  }
  static void set_error(Snapshot& s, std::string_view verb, Error error);
  // A job begins: what failed before is over.
  void publish_begin(std::string_view verb);

  // Long and concurrent jobs (session_jobs.cpp).
  void run_jobs();
  void queue(std::deque<Command> commands);
  bool run_command(const Command& command, Progress* progress);
  bool run_now(const Command& command);
  void begin_concurrent(Command command);  // requires the lock
  void run_concurrent_command(std::list<RunningJob>::iterator mine,
                              const std::shared_ptr<const Snapshot>& before);
  void join_ended();
  // Drops waiting commands that depend on a failed one; requires the lock.
  void drop_group(std::uint64_t group);
  // Cancels the jobs of a verb; empty: all.
  void cancel(const std::string& verb);
  void each_job(const std::string& verb, void (RunningJob::*what)());
  void inspect_partial_folders(const Command& command);
  void remember();

  // Immediate commands (session_apply.cpp).
  bool apply_now(const Command& command);
  void go(int step);

  // List and file contents (session_looks.cpp).
  void run_list();
  void run_inspections();
  void request_list();
  void request_inspection(const Command& command);
  bool inspection_wanted() const;
};

}  // namespace shw
