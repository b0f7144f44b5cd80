// State of settings and of panels that do not depend on a checkpoint: settings, tour, pasted error
// message, report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/verbs/ui_report.h"
#include "core/verbs/ui_settings.h"

namespace shw {

// Progress of the user within a tour step.
struct TourStepProgress {
  std::optional<TensorId> tensor;
  std::optional<std::size_t> finding;
  bool on_map = false, bytes = false, plan = false;
};

// The format of a file with the screen's contents.
enum class PictureFile : std::uint8_t { kNone, kPng, kSvg };

// A file that was requested, and the one before it.
struct RequestedFile {
  bool asked = false;
  std::weak_ptr<const verbs::WrittenReport> before;
};

struct PanelsState {
  PictureFile picture_wanted = PictureFile::kNone;  // written by the program after the next frame
  std::string picture_path;                         // into this file
  verbs::UiSettings settings;
  std::string ranks_per_node;  // as typed
  bool ranks_wanted = false;   // focus its field in the next frame
  // Set by the program, because views do not access files.
  std::string settings_file;              // empty: settings are not kept
  std::string settings_refused;           // why the existing file was ignored
  std::string settings_trouble;           // why they could not be saved
  std::string cache_folder;               // for the demo; empty: none
  std::optional<verbs::UiPanel> restore;  // to be opened once a tensor is selected

  bool settings_open = false, errors_open = false, report_open = false;
  bool expect_open = false, wants_expect_focus = false;  // see errors_wanted
  std::string expect_spec, expect_against;
  float expect_height = 400;
  bool pins_open = false, pins_wanted = false;  // see errors_wanted
  std::string pin_note;
  float pins_height = 340;
  bool errors_wanted = false;  // focus the text field in the next frame
  float settings_height = 480, errors_height = 420, report_height = 240;  // in the last frame
  std::string error_text;
  std::string lesson;  // rule to explain; empty: that of the finding
  RequestedFile view, hashes;
  bool report_asked = false;  // a report was requested; the previous one
  std::weak_ptr<const verbs::WrittenReport> report_before;
  int tour_step = -1;        // -1: no tour
  bool tour_wanted = false;  // start the tour once a checkpoint is open and checked
  std::weak_ptr<const CheckReport>
      report_before_demo;  // the report shown when the demo was requested
  TourStepProgress tour_began;
  float tour_height = 190;
};

}  // namespace shw
