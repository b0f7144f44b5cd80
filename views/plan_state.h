// What of the repair's panel a person sees and has not said.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace shw {

struct PlanEdit;

struct PlanState {
  std::set<std::size_t> unfolded;  // steps that show all their tensors
  bool text_open = false;          // the plan is being edited as text
  int reveal_text = 0;             // frames until it is laid out and can be scrolled to
  std::string text, file;
  std::weak_ptr<const PlanEdit> text_of;         // what `text` was taken from
  std::optional<std::string> asked_target = {};  // the place that was last asked about
  std::string device = "auto";                   // as parse_device reads it
};

}  // namespace shw
