// Pictures without a window, and replay scripts.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/exec/device.h"
#include "core/verbs/ui_settings.h"

namespace shw {

struct GuiOptions {
  std::string checkpoint = {}, spec = {}, against = {}, mesh = {}, screenshot = {}, replay = {},
              record = {}, settings = {};
  std::optional<verbs::UiTheme> theme = {};  // nothing: as the settings say
  int width = 1440, height = 900;
  float scale = 0;  // 0: the monitor's
  bool frame_times = false;
  std::function<Gpus()> gpus = {};  // looks for them; empty: nobody can
};

// "1440x900".
Status parse_size(const std::string& text, int* width, int* height);

// Draws what the desktop would show into options.screenshot, after the lines of options.replay:
// commands of the session (parse_command) and
//   wait | screenshot PATH | hover tile N | open-plan | explain | palette | zoom FACTOR | key NAME
//   | click NAME | type TEXT | slice DIM POSITION | recent FILE
//   | cache FOLDER | drop PATH
Status take_pictures(const GuiOptions& options);

}  // namespace shw
