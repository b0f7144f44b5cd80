// The card of an unfinished repair, above the status bar of every view: what it is, how much of it
// is finished, and its own Resume and Discard.
#include <fmt/core.h>

#include <algorithm>

#include "core/transform/steps.h"
#include "views/actions.h"
#include "views/parts.h"
#include "views/stopped_run_text.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr float kCard = 60;
constexpr std::size_t kShownSteps = 3;
constexpr float kStepLength = 120;  // in bytes

// The unfinished folders change while these jobs run.
bool is_shown(const Frame& frame) {
  for (const char* verb : {"repair", "resume", "roll-back", "undo"}) {
    if (frame.runs(verb)) return false;
  }
  return first_stopped_run(frame.snapshot) != nullptr;
}

std::string fill_text(const std::string& fill) {
  if (fill == "zero") return "zeros";
  if (fill == "cast") return "the weights for their master weights, zeros elsewhere";
  constexpr std::string_view kFrom = "from:";
  return fill.starts_with(kFrom) ? "the elements of " + printable(fill.substr(kFrom.size())) : fill;
}

std::string finished_text(const verbs::StoppedRun& run) {
  return run.files == 0 ? "no file of it is finished"
                        : fmt::format("{} of it are finished, {}", plural(run.files, "file"),
                                      human_bytes(run.bytes));
}

std::string error_text(const Error& error) {
  return error.place.file.empty() ? error.message
                                  : printable(error.place.file) + " " + error.message;
}

std::string title_text(const Frame& frame, const verbs::StoppedRun& run) {
  const std::size_t count = frame.snapshot.stopped->runs.size();
  const std::string which = count > 1 ? fmt::format("1 of {}: ", count) : "";
  if (run.in_use) return which + "An unfinished repair: " + printable(run.folder);
  if (run.in_place) return which + "A repair in place was stopped here.";
  return which + "A stopped repair is unfinished: " + printable(run.output) + "; " +
         finished_text(run) + ".";
}

std::string detail_text(const verbs::StoppedRun& run) {
  if (run.in_use)
    return error_text(*run.in_use) +
           (run.in_use->advice.empty() ? "." : ". " + sentence(run.in_use->advice));
  if (run.not_resumable) return "It cannot be resumed: " + error_text(*run.not_resumable) + ".";
  if (!run.is_of_open) return "It is made of " + printable(run.checkpoint) + ".";
  return plan_text_of(run);
}

void draw_buttons(Frame& frame, UiState& state, const verbs::StoppedRun& run, float& right,
                  float middle) {
  const auto draw = [&](const char* id, const char* label, const Tip& tip) {
    const ImVec2 size = button_size(frame, label);
    right -= size.x;
    const bool clicked = button(frame, id, label, tip, {right, middle - size.y / 2});
    right -= frame.px(8);
    return clicked;
  };
  if (is_possible(Action::kRollBack, frame, state) &&
      draw("stopped/discard", "Discard", Action::kRollBack))
    request_action(Action::kRollBack, frame, state);
  if (is_possible(Action::kResume, frame, state) &&
      draw("stopped/resume", "Resume", Action::kResume))
    request_action(Action::kResume, frame, state);
  const bool is_elsewhere = !run.is_of_open && !run.checkpoint.empty() && !run.in_use;
  if (is_elsewhere && !frame.job.running &&
      draw("stopped/open", "Open its checkpoint",
           "Opens what it is made of, to resume it there.")) {
    frame.emit(OpenCommand{run.checkpoint});
    frame.emit(CheckCommand{});
  }
}

}  // namespace

std::string plan_text_of(const verbs::StoppedRun& run) {
  if (run.plan == nullptr)
    return run.in_place ? "Only its last renames are left." : "Its plan is too long to be shown.";
  std::vector<std::string> steps;
  for (const Operation& step : run.plan->operations) steps.push_back(step.text);
  for (const Step& step : run.plan->steps) steps.push_back(to_text(step));
  if (!run.plan->format.empty()) steps.push_back("write as " + run.plan->format);
  std::string text = "Its plan: ";
  for (std::size_t i = 0; i < std::min(steps.size(), kShownSteps); ++i) {
    text += (i == 0 ? "" : "; ") +
            elide_end(printable(steps[i]), kStepLength,
                      [](std::string_view head) { return static_cast<float>(head.size()); });
  }
  if (steps.size() > kShownSteps)
    text += "; and " + plural(steps.size() - kShownSteps, "more step");
  if (!run.fill.empty()) text += ". Lost elements are filled with " + fill_text(run.fill);
  return text + ".";
}

std::string resume_question(const verbs::StoppedRun& run) {
  if (run.in_place) return plan_text_of(run) + " The checkpoint itself is changed: " + run.output;
  return plan_text_of(run) + " It becomes " + printable(run.output) + "; " + finished_text(run) +
         ". The plan on the screen is not used.";
}

std::string discard_question(const verbs::StoppedRun& run) {
  if (run.in_place)
    return "The checkpoint gets the metadata back that it had before: " + printable(run.output);
  return printable(run.folder) + " is deleted: " + finished_text(run) +
         ". The checkpoint is not touched.";
}

float stopped_card_height(const Frame& frame) {
  return is_shown(frame) ? frame.px(kCard) : 0;
}

void draw_stopped_card(Frame& frame, UiState& state, Region region) {
  if (!is_shown(frame)) return;
  const verbs::StoppedRun& run = *first_stopped_run(frame.snapshot);
  begin_region(frame, "stopped", region, frame.theme.raised, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float x = region.min.x + frame.px(40);
  const float middle = std::floor((region.min.y + region.max.y) / 2);
  float right = region.max.x - frame.px(16);
  draw_buttons(frame, state, run, right, middle);
  draw_sign(frame, draw, {region.min.x + frame.px(24), middle}, frame.px(8), Sign::kQuiet);
  const float width = right - x;
  text_from(draw, frame.fonts.text, x, middle - frame.px(11), frame.theme.text,
            elide_middle(title_text(frame, run), width, measure_with(frame.fonts.text)));
  text_from(draw, frame.fonts.small, x, middle + frame.px(12), frame.theme.quiet,
            elide_middle(detail_text(run), width, measure_with(frame.fonts.small)));
  draw->AddLine(region.min, {region.max.x, region.min.y}, frame.theme.line);
  end_region();
}

}  // namespace shw
