// A session with digests computed in the background, and the views drawn from them; shared by
// window and screenshots.
#pragma once

#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/gl_layouts.h"
#include "app/gui/picture.h"
#include "core/session/session.h"
#include "views/desk.h"

namespace shw {

class Workbench {
 public:
  // `wake` is called on any thread when there is something new to draw. Needs a current GL context
  // and an imgui context.
  explicit Workbench(std::function<void()> wake);
  ~Workbench();

  void open(const GuiOptions& what);
  // A path dropped by the user or by a replay.
  void drop(std::string path);
  void apply(Command command) { apply(std::vector<Command>{std::move(command)}); }
  void apply(std::vector<Command> commands);
  // Records all further commands as lines for --replay.
  void record_in(std::shared_ptr<std::ofstream> record) { record_ = std::move(record); }
  void set_gpu_detection(std::function<Gpus()> gpus) {
    session_.set_gpu_detection(std::move(gpus));
  }
  // Checks every two seconds whether another process changed the open checkpoint or saved a new
  // step.
  void watch_disk();
  // Recent places keep the verdict of the banner.
  void set_recent_places_file(std::string file);
  // Call between ImGui::NewFrame and ImGui::Render. Returns a request for tabs.
  std::optional<TabRequest> draw(const Fonts& fonts, float scale, double now,
                                 std::span<const KeyPress> keys, bool stable, const OpenTabs& tabs);
  // State after the last draw().
  const std::string& title() const { return title_; }
  // Waits until jobs, digests and layouts are done, for screenshots.
  void settle();
  // True while something runs that needs frames without events.
  bool busy() const;
  // True while a job runs that the user is asked about first.
  bool asks_before_closing() const;
  // Cancels all jobs, without waiting for their ends.
  void stop_jobs() { session_.apply(CancelCommand{}); }
  // State for the tab strip.
  OpenTab described() const;

  UiState& desk() { return ui_; }
  Marks& marks() { return marks_; }
  std::shared_ptr<const Snapshot> snapshot() const { return session_.snapshot(); }

 private:
  void make_digests();
  void follow_up(const Snapshot& snapshot);
  bool digest_is_late() const;

  std::shared_ptr<std::ofstream> record_;
  std::function<void()> wake_;
  UiState ui_;
  Marks marks_;
  std::string title_ = "Shardwright";
  GlLayouts layouts_;
  std::shared_ptr<const CheckReport> followed_;
  std::weak_ptr<const Checkpoint> followed_checkpoint_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Digest> digest_;
  bool stopping_ = false;
  std::thread digest_thread_, watch_thread_;
  Session session_;  // must be last: its callback uses the members above
};

}  // namespace shw
