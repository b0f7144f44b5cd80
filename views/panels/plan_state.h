// User interface state of the repair panel.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace shw {

struct PlanEdit;

struct PlanState {
  std::set<std::size_t> unfolded;  // steps that list all their tensors
  bool text_open = false;          // the plan is edited as text
  int reveal_text = 0;             // frames until the text can be scrolled to
  std::string text, file;
  std::weak_ptr<const PlanEdit> text_of;         // the plan from which `text` was taken
  std::optional<std::string> asked_target = {};  // the folder that was last examined
  const void* asked_of = nullptr;                // for this plan; never dereferenced
  std::string asked_suffix = {};                 // of the default name
  std::string device = "auto";                   // syntax of parse_device
};

}  // namespace shw
