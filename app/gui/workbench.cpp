#include "app/gui/workbench.h"

#include <algorithm>
#include <chrono>

#include "core/base/threads.h"
#include "core/verbs/run/run_steps.h"
#include "views/parts.h"
#include "views/verdict.h"

namespace shw {
namespace {

std::size_t watched_files(const Snapshot& snapshot) {
  std::size_t files = snapshot.disk == nullptr ? 0 : snapshot.disk->files.size();
  if (!run_is_shown(snapshot)) return files;
  for (const verbs::RunStep& step : snapshot.run->steps) files += step.files;
  return files;
}

}  // namespace

Workbench::Workbench(std::function<void()> wake)
    : wake_(wake), layouts_(wake), digest_(make_digest(std::make_shared<const Snapshot>())) {
  session_.on_change([this] {
    // Locks the mutex once, so that a thread that has just found nothing to do is waiting by now
    // and receives the notification.
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  });
  start_thread(digest_thread_, [this] { make_digests(); });
}

Workbench::~Workbench() {
  session_.on_change(nullptr);
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (digest_thread_.joinable()) digest_thread_.join();
  if (watch_thread_.joinable()) watch_thread_.join();
}

void Workbench::watch_disk() {
  start_thread(watch_thread_, [this] {
    // Limit of 1,000 files a second, to spare the file server of a cluster.
    constexpr std::size_t kFilesPerSecond = 1'000;
    std::chrono::seconds pause{2};
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [&] { return stopping_; })) {
      lock.unlock();
      auto snapshot = session_.snapshot();
      // A repair in place is our own change. Looks take turns with tiles that are being read.
      if (!session_.job().changes_open) {
        if (snapshot->checkpoint != nullptr) session_.apply(DiskCommand{});
        if (run_is_shown(*snapshot) && (snapshot->run->is_complete() || snapshot->run->error))
          session_.apply(RunCommand{});
      }
      pause = std::chrono::seconds(
          std::max<std::size_t>(2, watched_files(*snapshot) / kFilesPerSecond));
      lock.lock();
    }
  });
}

void Workbench::set_recent_places_file(std::string file) {
  session_.set_recent_places_file(std::move(file), verdict_to_remember);
}

void Workbench::open(const GuiOptions& what) {
  // The list of another checkpoint starts without a filter.
  std::vector<Command> commands;
  if (!ui_.filter.empty()) commands.emplace_back(FilterCommand{});
  ui_.filter.clear();
  commands.emplace_back(OpenCommand{what.checkpoint, what.spec, what.against, what.mesh});
  commands.emplace_back(CheckCommand{});
  apply(std::move(commands));
}

void Workbench::drop(std::string path) {
  ui_.browser.open = false;
  ui_.browser.dropped = std::move(path);
  ui_.browser.is_drop_listing_requested = false;
}

// Recorded before execution, so that the last line is the command that crashed.
void Workbench::apply(std::vector<Command> commands) {
  for (Command& command : commands) {
    if (record_ == nullptr) break;
    command = without_passwords(std::move(command));
    std::string line = to_text(command);
    bool one_line = line.find_first_of("\n\r") == line.npos;
    *record_ << (one_line ? line : "# left out: a name with a line break in it") << std::endl;
  }
  session_.apply(std::move(commands));
}

bool Workbench::digest_is_late() const {
  return digest_->snapshot->revision != session_.snapshot()->revision;
}

void Workbench::make_digests() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || digest_is_late(); });
    if (stopping_) return;
    auto before = digest_;
    lock.unlock();
    auto digest = make_digest(session_.snapshot(), before.get());
    lock.lock();
    digest_ = std::move(digest);
    changed_.notify_all();
    if (wake_) wake_();
  }
}

// Runs once after each check.
void Workbench::follow_up(const Snapshot& snapshot) {
  if (snapshot.report == followed_) return;
  followed_ = snapshot.report;
  // A later check of the same checkpoint leaves the list as the user has set it.
  const bool is_first = followed_checkpoint_.lock() != snapshot.checkpoint;
  followed_checkpoint_ = snapshot.checkpoint;
  for (Command& command : shw::follow_up(snapshot)) {
    if (const auto* filter = std::get_if<FilterCommand>(&command)) {
      if (!ui_.filter.empty() || !is_first) continue;
      ui_.filter = filter->text;
    }
    session_.apply(std::move(command));
  }
}

std::optional<TabRequest> Workbench::draw(const Fonts& fonts, float scale, double now,
                                          std::span<const KeyPress> keys, bool stable,
                                          const OpenTabs& tabs) {
  std::shared_ptr<const Digest> digest;
  {
    std::lock_guard lock(mutex_);
    digest = digest_;
  }
  follow_up(*digest->snapshot);
  JobState job = session_.job();
  std::vector<JobState> concurrent_jobs = session_.concurrent_jobs();
  std::vector<Command> commands;
  const Theme& theme = theme_of(ui_.panel_state.settings.theme);
  Frame frame{*digest, *digest->snapshot, job, theme, fonts, layouts_, commands, keys};
  frame.scale = scale;
  frame.now = now;
  frame.concurrent_jobs = concurrent_jobs;
  frame.stable = stable;
  frame.marks = &marks_;
  frame.open_tabs = &tabs;
  draw_ui(frame, ui_);
  layouts_.end_frame();
  title_ = window_title(*digest, shown_job(job, concurrent_jobs));
  if (!commands.empty()) apply(std::move(commands));
  return std::move(frame.tab_request);
}

void Workbench::settle() {
  for (int round = 0; round < 4; ++round) {
    session_.wait();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !digest_is_late(); });
    auto digest = digest_;
    lock.unlock();
    follow_up(*digest->snapshot);
  }
  layouts_.wait();
}

bool Workbench::busy() const {
  JobState job = session_.job();
  if ((job.running && !job.paused) || job.looking || layouts_.pending()) return true;
  for (const JobState& each : session_.concurrent_jobs()) {
    if (!each.paused) return true;
  }
  std::lock_guard lock(mutex_);
  return digest_is_late();
}

bool Workbench::asks_before_closing() const {
  if (is_asked_before_stopping(session_.job())) return true;
  return std::ranges::any_of(session_.concurrent_jobs(), is_asked_before_stopping);
}

OpenTab Workbench::described() const {
  std::shared_ptr<const Digest> digest;
  {
    std::lock_guard lock(mutex_);
    digest = digest_;
  }
  const Snapshot& snapshot = *digest->snapshot;
  const JobState job = session_.job();
  const std::vector<JobState> concurrent_jobs = session_.concurrent_jobs();
  const VerdictText verdict = verdict_of(snapshot, shown_job(job, concurrent_jobs), *digest->about);
  return {snapshot.options.checkpoint, verdict.tone, verdict.title,
          job.running || !concurrent_jobs.empty()};
}

}  // namespace shw
