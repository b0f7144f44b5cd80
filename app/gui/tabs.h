// The checkpoints that are open in one window: a workbench per tab, of which one is drawn.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "app/gui/settings_autosaver.h"
#include "app/gui/workbench.h"

namespace shw {

class Tabs {
 public:
  // `make` creates the workbench of a new tab. Begins with one tab.
  explicit Tabs(std::function<std::unique_ptr<Workbench>()> make);

  Workbench& shown() { return *tabs_[shown_].bench; }
  std::size_t count() const { return tabs_.size(); }
  // Adds a tab and shows it. Does nothing if there are kMaxTabs.
  void add_empty();
  void show(std::size_t tab);
  // Cancels the tab's job and lets it end during later frames. Does nothing for the only tab.
  void close(std::size_t tab);
  // Opens the checkpoints of the command line and shows the first.
  void open_all(const GuiOptions& options);
  // Records all further commands, of all tabs, as lines for --replay.
  Status record_in(const std::string& file);
  // Stores the settings, which all tabs share, in this file; empty: not stored.
  void autosave_settings_to(const std::string& file);
  // Call between ImGui::NewFrame and ImGui::Render. Also executes requests for tabs.
  void draw(const Fonts& fonts, float scale, double now, std::span<const KeyPress> keys,
            bool stable);
  // Requests to quit: asks about running jobs, one tab after the other.
  void leave() { shown().desk().quit_wanted = true; }
  bool has_left() const { return has_left_; }
  // True while any tab needs frames without events.
  bool busy() const;
  void settle();

 private:
  struct Tab {
    std::uint64_t id = 0;
    std::unique_ptr<Workbench> bench;
    bool has_agreed_to_quit = false;  // the user wants to quit even while this tab's job runs
    std::string view = {}, noted_view = {};  // view lines: of the last frame, and in the record
  };
  void append();
  OpenTabs described() const;
  void show_same_tensor_in_tab(std::size_t tab);
  void handle_tab_request(const TabRequest& request);
  void quit_if_all_tabs_agree();
  void note(std::string line);
  void record_view_if_stable();

  std::function<std::unique_ptr<Workbench>()> make_;
  std::vector<Tab> tabs_;                            // never empty
  std::vector<std::unique_ptr<Workbench>> closing_;  // closed tabs whose cancelled jobs still run
  std::size_t shown_ = 0;
  std::uint64_t next_id_ = 0;
  bool has_left_ = false;
  std::unique_ptr<SettingsAutosaver> keeper_;
  std::shared_ptr<std::ofstream> record_;
};

}  // namespace shw
