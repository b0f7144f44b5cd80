// The name of the selected tensor as a path: a click on a module lists its tensors, one on the
// checkpoint shows it as a whole.
#include <fmt/core.h>

#include <imgui.h>
#include <vector>

#include "core/io/path_suffix.h"
#include "core/report/text_words.h"
#include "views/actions.h"
#include "views/controls.h"
#include "views/map/tensor_view.h"
#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxModules = 12;
constexpr std::string_view kAfterCheckpoint = "  \u203a  ";

// The lengths of the modules around a tensor: of "a.b.weight" 1 and 3. Empty if the filter could
// not name them.
std::vector<std::size_t> module_ends(std::string_view fqn) {
  std::vector<std::size_t> ends;
  if (fqn.find_first_of("*?: ~\"") != fqn.npos) return ends;
  for (std::size_t at = fqn.find('.'); at != fqn.npos; at = fqn.find('.', at + 1))
    ends.push_back(at);
  if (ends.size() > kMaxModules) ends.clear();
  return ends;
}

// A text that is underlined while the mouse is over it.
bool draw_crumb(Frame& frame, const char* id, const ImFont* font, std::string_view text,
                Rgba colour, ImVec2 at, const Tip& tip) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float middle = at.y + frame.px(12);
  const float width = text_from(draw, font, at.x, middle, colour, text);
  ImGui::SetCursorScreenPos({at.x, at.y + frame.px(1)});
  const bool clicked = control(frame, id, {width, frame.px(22)}, tip);
  if (ImGui::IsItemHovered())
    draw->AddLine({at.x, middle + frame.px(9)}, {at.x + width, middle + frame.px(9)},
                  frame.theme.text);
  focus_ring(frame, draw);
  return clicked;
}

// Returns the width.
float draw_checkpoint_crumb(Frame& frame, UiState& state, ImDrawList* draw, ImVec2 at, float room) {
  const ImFont* font = frame.fonts.small;
  const std::string name = printable(short_path(frame.snapshot.options.checkpoint));
  const float width = text_width(font, name) + text_width(font, kAfterCheckpoint);
  if (name.empty() || width > room) return 0;
  if (draw_crumb(frame, "crumb/checkpoint", font, name, frame.theme.quiet, at, Action::kSummary))
    run(Action::kSummary, frame, state);
  text_from(draw, font, at.x + text_width(font, name), at.y + frame.px(12), frame.theme.quiet,
            kAfterCheckpoint);
  return width;
}

}  // namespace

float draw_breadcrumb(Frame& frame, UiState& state, ImDrawList* draw, std::string_view fqn,
                      ImVec2 at, float room) {
  const ImFont* font = frame.fonts.mono;
  const std::string_view shown = shown_name(fqn);
  const float name_width = text_width(font, shown);
  float x = at.x;
  if (name_width <= room) x += draw_checkpoint_crumb(frame, state, draw, at, room - name_width);
  const std::vector<std::size_t> ends = module_ends(fqn);
  if (shown != fqn || name_width > room || ends.empty()) {
    const std::string fitting = elide_middle(shown, room, measure_with(font));
    const float width = text_from(draw, font, x, at.y + frame.px(12), frame.theme.text, fitting);
    if (fitting != shown && ImGui::IsMouseHoveringRect({x, at.y}, {x + width, at.y + frame.px(24)}))
      tooltip(frame, shown);
    return x + width - at.x;
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string module(fqn.substr(0, ends[i]));
    const auto tip = [&] { return "Lists the tensors of " + module + "."; };
    const std::string_view part = fqn.substr(begin, ends[i] + 1 - begin);  // with its dot
    if (draw_crumb(frame, fmt::format("crumb/{}", i).c_str(), font, part, frame.theme.text,
                   {x, at.y}, tip)) {
      state.filter = module + ".*";
      frame.emit(FilterCommand{state.filter});
    }
    x += text_width(font, part);
    begin = ends[i] + 1;
  }
  x += text_from(draw, font, x, at.y + frame.px(12), frame.theme.text, fqn.substr(begin));
  return x - at.x;
}

}  // namespace shw
