#include "app/gui/settings_autosaver.h"

#include <chrono>
#include <utility>

#include "core/base/threads.h"
#include "core/io/store.h"

namespace shw {
namespace {

// Dragging a splitter changes settings sixty times a second.
constexpr std::chrono::milliseconds kMoment{400};

}  // namespace

SettingsAutosaver::SettingsAutosaver(std::string file, PanelsState& panel_state)
    : file_(std::move(file)) {
  verbs::LoadedUiSettings kept = verbs::read_ui_settings(posix_store(), file_);
  read_ = seen_ = kept.settings;
  settings_file_renamed_ = !kept.refused.empty();
  panel_state.settings_file = file_;
  panel_state.settings_refused = std::move(kept.refused);
  start_thread(thread_, [this] { work(); });
}

SettingsAutosaver::~SettingsAutosaver() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string SettingsAutosaver::keep(const verbs::UiSettings& settings) {
  std::lock_guard lock(mutex_);
  if (settings != seen_) {
    seen_ = settings;
    wanted_ = settings;
    changed_.notify_all();
    if (!thread_.joinable()) last_save_error_ = "the system refuses to start more threads";
  }
  return last_save_error_;
}

void SettingsAutosaver::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || wanted_; });
    if (!wanted_) return;
    while (!stopping_) {
      verbs::UiSettings before = *wanted_;
      changed_.wait_for(lock, kMoment, [&] { return stopping_; });
      if (*wanted_ == before) break;
    }
    verbs::UiSettings settings = *std::exchange(wanted_, std::nullopt);
    lock.unlock();
    Status written =
        verbs::write_ui_settings(posix_store(), file_, settings, settings_file_renamed_);
    lock.lock();
    if (written) settings_file_renamed_ = false;
    last_save_error_ = written ? std::string() : written.error().message;
  }
}

}  // namespace shw
