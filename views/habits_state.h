// How the desk is set up, and its panels that are of no checkpoint: settings, the tour, an error
// message that was pasted, the report.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/verbs/desk_report.h"
#include "core/verbs/desk_settings.h"

namespace shw {

// What a step of the tour asks for, as far as it is done.
struct TourMoment {
  std::optional<TensorId> tensor;
  std::optional<std::size_t> finding;
  bool on_map = false, bytes = false, plan = false;
};

struct HabitsState {
  verbs::DeskSettings settings;
  // By the program, which alone touches files.
  std::string settings_file;                // where the settings are kept; empty: nowhere
  std::string settings_refused;             // why the file that lay there was not taken
  std::string settings_trouble;             // why they could not be written
  std::string cache_folder;                 // where the demo is made; empty: nowhere
  std::optional<verbs::DeskPanel> restore;  // to be opened once a tensor is selected

  bool settings_open = false, errors_open = false, report_open = false;
  bool expect_open = false, expect_wanted = false;  // wanted: as errors_wanted
  std::string expect_spec, expect_against;
  float expect_height = 400;
  bool errors_wanted = false;  // puts the keyboard into its field at the next frame
  float settings_height = 480, errors_height = 420, report_height = 240;  // of the last frame
  std::string error_text, report_path;
  std::string lesson;         // the rule that is explained; empty: the finding's
  bool report_asked = false;  // and not there yet; the one before it
  std::weak_ptr<const verbs::WrittenReport> report_before;
  int tour_step = -1;                            // -1: nobody is led around
  bool tour_wanted = false;                      // as soon as something is open and checked
  std::weak_ptr<const CheckReport> tour_not_of;  // what was open when the demo was asked for
  TourMoment tour_began;
  float tour_height = 190;
};

}  // namespace shw
