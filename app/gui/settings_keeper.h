// Keeps the settings of the desk in their file, on a thread of its own: a home on a slow server
// must not hold a frame.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/verbs/ui_settings.h"
#include "views/habits_state.h"

namespace shw {

class SettingsKeeper {
 public:
  // Reads the file, which need not be there, and says in `habits` what came of it.
  SettingsKeeper(std::string file, HabitsState& habits);
  // Writes what is not yet written.
  ~SettingsKeeper();
  const verbs::UiSettings& read() const { return read_; }
  // As they are in this frame: written once they have not changed for a moment. Why the last ones
  // could not be; empty where they could.
  std::string keep(const verbs::UiSettings& settings);

 private:
  void work();

  std::string file_;
  bool set_aside_ = false;
  verbs::UiSettings read_, seen_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<verbs::UiSettings> wanted_;
  std::string trouble_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace shw
