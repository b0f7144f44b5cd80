// Saves the window's settings on a thread, so that a slow home directory does not delay
// frames.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/verbs/ui_settings.h"
#include "views/panels/panels_state.h"

namespace shw {

class SettingsAutosaver {
 public:
  // Reads the file, if it exists, and reports problems in `panel_state`.
  SettingsAutosaver(std::string file, PanelsState& panel_state);
  // Saves pending changes.
  ~SettingsAutosaver();
  const verbs::UiSettings& read() const { return read_; }
  // Call every frame; settings are saved once they have not changed for 400 ms. Returns why the
  // last save failed, or empty.
  std::string keep(const verbs::UiSettings& settings);

 private:
  void work();

  std::string file_;
  bool settings_file_renamed_ = false;
  verbs::UiSettings read_, seen_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<verbs::UiSettings> wanted_;
  std::string last_save_error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace shw
