// The list and file contents, which respond while jobs run.
#include <algorithm>

#include "core/base/stop_requests.h"
#include "core/session/content_run.h"
#include "core/session/session_state.h"
#include "core/verbs/names/tensor_order.h"

namespace shw {

void Session::State::request_list() {
  {
    std::lock_guard lock(mutex);
    list_wanted = true;
    list_progress->cancel();  // a running one uses an older text
  }
  changed.notify_all();
}

void Session::State::request_inspection(const Command& command) {
  {
    std::lock_guard lock(mutex);
    looks[command.index()] = command;
    if (look_running && read_job_kind == command.index()) look_progress->cancel();
  }
  changed.notify_all();
}

bool Session::State::inspection_wanted() const {
  return std::any_of(looks.begin(), looks.end(), [](const auto& look) { return look; });
}

void Session::State::run_list() {
  TensorOrder list;
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
      auto order =
          list.list({before->checkpoint, before->report, text, wanted.key, wanted.descending},
                    progress.get());
      if (order) {
        publish([&](Snapshot& s) {
          if (s.checkpoint != before->checkpoint)
            return;  // another checkpoint was opened: its own list follows
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

void Session::State::run_inspections() {
  while (true) {
    Command command;
    std::shared_ptr<const Snapshot> before;
    std::shared_ptr<Progress> progress;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || inspection_wanted(); });
      if (stopping) return;
      // In turn: reading tiles, which goes on for minutes, must not keep the others waiting.
      const auto begin = looks.begin() + static_cast<std::ptrdiff_t>(read_job_kind) + 1;
      const auto is_wanted = [](const auto& look) { return look.has_value(); };
      auto wanted = std::find_if(begin, looks.end(), is_wanted);
      if (wanted == looks.end()) wanted = std::find_if(looks.begin(), begin, is_wanted);
      command = std::move(**wanted);
      wanted->reset();
      look_running = true;
      read_job_kind = command.index();
      look_progress = std::make_shared<Progress>();
      progress = look_progress;
      before = snapshot;
    }
    const JobScope works_for(&progress->cancelled);
    auto change = row_of(command).run(*before, command, progress.get());
    if (change)
      publish([&](Snapshot& s) {
        if (is_still_viewed(s, *before, command)) (*change)(s);
      });
    {
      std::lock_guard lock(mutex);
      look_running = false;
      auto& next = looks[command.index()];
      bool goes_on = change && !is_cancelled(progress.get()) && !next;
      if (goes_on && has_more_results(*snapshot, command)) next = command;
    }
    changed.notify_all();
  }
}

}  // namespace shw
