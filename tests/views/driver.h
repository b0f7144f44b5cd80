// Drives the desktop without a window: imgui with a null renderer, clicks by name, keys by
// shortcut.
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "views/actions.h"
#include "views/desk.h"
#include "views/layout_cache.h"

namespace shw {

class Driver {
 public:
  explicit Driver(std::shared_ptr<const Snapshot> snapshot, ImVec2 size = {1440, 900},
                  float scale = 0);  // scale 0: 1, with imgui's own font
  ~Driver();
  void show(std::shared_ptr<const Snapshot> snapshot, JobState job = {},
            std::vector<JobState> beside = {});
  std::vector<Command> frame(std::vector<KeyPress> keys = {});
  std::vector<Command> click(const std::string& name);
  std::vector<Command> type(const std::string& text);
  // Presses at one place and releases at another, in so many frames.
  void drag(ImVec2 from, ImVec2 to);
  std::string drawn_text() const;  // all texts of the last frame
  // Texts of the last frame that are cut off or overlap.
  std::vector<std::string> text_faults() const;
  ImVec2 middle(const std::string& name) const;

  UiState desk;
  Marks marks;
  OpenTabs tabs{std::vector<OpenTab>(1)};
  std::optional<TabRequest> tab_request;  // the last one

 private:
  float scale_ = 1;
  Fonts fonts_;
  LayoutCache layouts_;
  std::shared_ptr<const Digest> digest_;
  JobState job_;
  std::vector<JobState> beside_;
  double now_ = 0;
};

}  // namespace shw
