// Screenshots without a window, and replay scripts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/exec/device.h"
#include "core/verbs/ui_settings.h"

namespace shw {

struct GuiOptions {
  std::string checkpoint = {}, spec = {}, against = {}, mesh = {}, screenshot = {}, replay = {},
              record = {}, settings = {};
  std::vector<std::string> more = {};        // further checkpoints, each in a tab
  std::optional<verbs::UiTheme> theme = {};  // nullopt: according to the settings
  int width = 1440, height = 900;
  float scale = 0;  // 0: the monitor's scale
  bool frame_times = false;
  std::function<Gpus()> gpus = {};  // detects GPUs; empty: no detection
};

// "1440x900".
Status parse_size(const std::string& text, int* width, int* height);

// Saves a screenshot to options.screenshot after running the lines of options.replay: session
// commands (parse_command) and
//   wait | screenshot PATH | hover tile N | open-plan | explain | palette | zoom FACTOR | key NAME
//   | click NAME | type TEXT | slice DIM POSITION | recent FILE
//   | view KEY=VALUE ... (view_state.h) | cache FOLDER | drop PATH | new-tab [PATH] | tab INDEX |
//   close-tab INDEX
Status render_pictures(const GuiOptions& options);

}  // namespace shw
