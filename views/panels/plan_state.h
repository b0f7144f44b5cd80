// User interface state of the repair panel.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace shw {

class Checkpoint;
struct PlanEdit;

struct PlanState {
  std::set<std::size_t> unfolded;  // steps that list all their tensors
  bool text_open = false;          // the plan is edited as text
  int reveal_text = 0;             // frames until the text can be scrolled to
  std::string text, file;
  std::weak_ptr<const PlanEdit> text_of;         // the plan from which `text` was taken
  std::weak_ptr<const Checkpoint> checkpoint;    // what was typed here is about
  bool fill_shown = false;                       // the path to fill from can be typed
  std::string sent_fill = {};                    // what was typed there when Enter was pressed
  std::weak_ptr<const PlanEdit> sent_of = {};    // with this plan
  bool out_has_keys = false;                     // the field of the output folder has the keyboard
  std::optional<std::string> asked_target = {};  // the folder that was last examined
  double asked_at = 0;
  const void* asked_of = nullptr;  // for this plan; never dereferenced
  std::string asked_suffix = {};   // of the default name
  std::string device = "auto";     // syntax of parse_device
};

}  // namespace shw
