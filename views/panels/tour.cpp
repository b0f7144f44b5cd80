// The demo and a tour of five steps. A step points at an existing item and ends when the user has
// done it or clicks Next; Escape leaves. The tour starts automatically only once.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <array>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

struct TourStep {
  std::array<const char*, 3> targets;  // the first existing one; "row": a tensor in the list
  const char* title;
  const char* text;
};
constexpr std::array<TourStep, 5> kSteps{{
    {{"region/verdict", "", ""},
     "The verdict comes first",
     "In words, colour and sign: whether the checkpoint is whole, what is wrong with it, and what "
     "was not checked. The one action that you want next is at its end. F8 goes to the next "
     "finding."},
    {{"row", "rail/left", ""},
     "From a finding to its tensors",
     "The list shows the tensors that findings name. Choose another one, with a click or the arrow "
     "keys; Ctrl+F filters all of them."},
    {{"map/saved", "", ""},
     "Saved, expected and after, side by side",
     "A tile is what one rank wrote, in the colour that this rank has everywhere. Point at a tile: "
     "who wrote it, where it is in the file. The wheel zooms."},
    {{"tile/bytes", "finding/bytes", "rail/right"},
     "Down to the byte",
     "Ctrl+H shows the bytes of a tile, with the records of the file around them. Escape comes "
     "back."},
    {{"bar/next", "region/verdict", ""},
     "The repair, before it is made",
     "Review it: every step with what it costs and loses, to be switched off or edited. What was "
     "opened stays as it is unless you ask for a repair in place, and what is made is proved."},
}};

struct Target {
  ImVec2 min, max;
};

std::optional<Target> find_target(const Frame& frame, const TourStep& step) {
  if (frame.marks == nullptr) return std::nullopt;
  const auto& items = frame.marks->items;
  for (const char* name : step.targets) {
    auto found = items.find(name);
    if (std::string_view(name) == "row")
      found = std::find_if(items.begin(), items.end(),
                           [](const auto& item) { return item.first.starts_with("list/row/"); });
    if (found != items.end() && *name != 0)
      return Target{{found->second.x, found->second.y}, {found->second.z, found->second.w}};
  }
  return std::nullopt;
}

// The state that a step watches, recorded when the step begins.
TourStepProgress moment_of(const Frame& frame, const UiState& state) {
  return {frame.snapshot.tensor, frame.snapshot.finding,
          state.map.hovered.has_value() || state.map.zoom > 1, frame.snapshot.bytes != nullptr,
          state.plan_open};
}

bool is_done(int step, const TourStepProgress& began, const TourStepProgress& now) {
  switch (step) {
    case 0:
      return now.finding != began.finding;
    case 1:
      return now.tensor != began.tensor;
    case 2:
      return now.on_map && !began.on_map;
    case 3:
      return now.bytes && !began.bytes;
    default:
      return now.plan && !began.plan;
  }
}

void end_tour(UiState& state) {
  state.panel_state.tour_step = -1;
  state.panel_state.settings.tour_seen = true;
}

void next_step(const Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  panel_state.tour_began = moment_of(frame, state);
  if (++panel_state.tour_step >= static_cast<int>(kSteps.size())) end_tour(state);
}

// Below the target, else above, else next to it; always inside the window.
ImVec2 place_next_to_target(const std::optional<Target>& target, ImVec2 size, ImVec2 screen,
                            float gap) {
  ImVec2 at{(screen.x - size.x) / 2, screen.y - size.y - gap * 6};
  if (target) {
    bool below = target->max.y + gap + size.y <= screen.y;
    bool above = target->min.y - gap - size.y >= 0;
    at.x = target->min.x;
    at.y = below ? target->max.y + gap : above ? target->min.y - gap - size.y : target->min.y;
    if (!below && !above)
      at.x = target->max.x + gap + size.x <= screen.x ? target->max.x + gap
                                                      : target->min.x - gap - size.x;
  }
  return {std::floor(std::clamp(at.x, gap, std::max(gap, screen.x - size.x - gap))),
          std::floor(std::clamp(at.y, gap, std::max(gap, screen.y - size.y - gap)))};
}

void draw_bubble(Frame& frame, UiState& state, const TourStep& step) {
  PanelsState& panel_state = state.panel_state;
  auto target = find_target(frame, step);
  ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImVec2 size{std::min(frame.px(380), screen.x - frame.px(24)), panel_state.tour_height};
  ImVec2 at = place_next_to_target(target, size, screen, frame.px(12));
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, frame.theme.raised);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.px(8));
  ImGui::Begin("##tour", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  add_frame(draw, at, {at.x + size.x, at.y + size.y}, frame.theme.unknown, frame.px(8),
            frame.px(1.5f));
  Column column{draw, at.x + frame.px(18), at.x + size.x - frame.px(18), at.y + frame.px(14),
                at.y + size.y};
  head(frame, column, fmt::format("{} OF {}", panel_state.tour_step + 1, kSteps.size()));
  paragraph(frame, column, frame.fonts.strong, frame.theme.text, step.title, Gap::kSmall);
  paragraph(frame, column, frame.fonts.small, frame.theme.text, step.text, Gap::kMedium);
  bool last = panel_state.tour_step + 1 == static_cast<int>(kSteps.size());
  const char* label = last ? "Done" : "Next";
  float wide = button_size(frame, label).x;
  if (button(frame, "tour/leave", "Leave", "Ends the tour.  (Esc)", {column.left, column.y},
             ButtonStyle::kQuiet))
    end_tour(state);
  text_from(draw, frame.fonts.mono_small,
            column.left + button_size(frame, "Leave").x + frame.px(12), column.y + frame.px(15),
            frame.theme.quiet, "Esc");
  if (button(frame, "tour/next", label,
             Tip(last ? "Ends the tour." : "Goes to the next step.", Action::kTour),
             {column.right - wide, column.y}) &&
      panel_state.tour_step >= 0)
    next_step(frame, state);
  draw_text_ending_at(draw, frame.fonts.mono_small, column.right - wide - frame.px(12),
                      column.y + frame.px(15), frame.theme.quiet, to_text(key_of(Action::kTour)));
  panel_state.tour_height += column.y + frame.px(30 + 14) - column.bottom;
  ImGui::End();
  if (!target) return;
  // Clipped to the window.
  float out = frame.px(3), edge = frame.px(1);
  add_frame(ImGui::GetForegroundDrawList(),
            {std::max(target->min.x - out, edge), std::max(target->min.y - out, edge)},
            {std::min(target->max.x + out, screen.x - edge),
             std::min(target->max.y + out, screen.y - edge)},
            frame.theme.unknown, frame.px(5), frame.px(2));
}

}  // namespace

bool tour_is_on(const UiState& state) {
  return state.panel_state.tour_step >= 0;
}

void leave_tour(UiState& state) {
  end_tour(state);
}

void open_demo(Frame& frame, UiState& state) {
  if (!state.filter.empty()) frame.emit(FilterCommand{});
  state.filter.clear();
  frame.emit(DemoCommand{state.panel_state.cache_folder + "/demo"});
  frame.emit(CheckCommand{});
  state.panel_state.tour_wanted = !state.panel_state.settings.tour_seen;
  state.panel_state.report_before_demo = frame.snapshot.report;
}

void step_tour(Frame& frame, UiState& state) {
  if (tour_is_on(state)) return next_step(frame, state);
  state.panel_state.report_before_demo.reset();
  if (frame.snapshot.checkpoint == nullptr) open_demo(frame, state);
  state.panel_state.tour_wanted = true;
}

void draw_tour(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  if (frame.snapshot.error && !frame.job.running) panel_state.tour_wanted = false;
  bool ready = frame.snapshot.report != nullptr && !frame.job.running &&
               frame.snapshot.report != panel_state.report_before_demo.lock();
  if (panel_state.tour_wanted && ready) {
    panel_state.tour_wanted = false;
    panel_state.tour_step = 0;
    panel_state.tour_began = moment_of(frame, state);
  }
  if (!tour_is_on(state)) return;
  if (frame.snapshot.checkpoint == nullptr) return end_tour(state);
  if (is_done(panel_state.tour_step, panel_state.tour_began, moment_of(frame, state)))
    next_step(frame, state);
  // The tour waits while another panel is open.
  if (tour_is_on(state) && !is_covered(state))
    draw_bubble(frame, state, kSteps[static_cast<std::size_t>(panel_state.tour_step)]);
}

}  // namespace shw
