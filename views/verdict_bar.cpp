#include "views/parts.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

Sign sign_of(Tone tone) {
  switch (tone) {
    case Tone::kOk:
      return Sign::kOk;
    case Tone::kBad:
      return Sign::kBad;
    case Tone::kWarn:
      return Sign::kWarn;
    case Tone::kUnknown:
      return Sign::kUnknown;
    case Tone::kQuiet:
      break;
  }
  return Sign::kQuiet;
}

Rgba back_of(const Theme& theme, Tone tone) {
  switch (tone) {
    case Tone::kOk:
      return theme.ok_back;
    case Tone::kBad:
      return theme.bad_back;
    case Tone::kWarn:
      return theme.warn_back;
    case Tone::kUnknown:
      return theme.unknown_back;
    case Tone::kQuiet:
      break;
  }
  return theme.side;
}

struct BarButton {
  const char* id;
  Action action;
  std::string label;
  ButtonStyle style;
};

// From right to left; gives where the first one begins.
float draw_buttons(Frame& frame, DeskState& state, const VerdictText& verdict, Region region) {
  std::vector<BarButton> buttons;
  bool findings = frame.snapshot.report != nullptr && !frame.snapshot.report->findings.empty();
  if (frame.snapshot.repaired != nullptr && is_possible(Action::kUndo, frame, state))
    buttons.push_back({"bar/undo", Action::kUndo, "Undo", ButtonStyle::kPlain});
  if (findings) {
    buttons.push_back({"bar/report", Action::kCopyReport, "Copy report", ButtonStyle::kPlain});
    buttons.push_back({"bar/explain", Action::kExplain, "Explain", ButtonStyle::kPlain});
  }
  if (verdict.next) {
    bool primary = *verdict.next == Action::kReview || *verdict.next == Action::kVerify ||
                   *verdict.next == Action::kOpenRepaired;
    buttons.push_back({"bar/next", *verdict.next, verdict.next_label,
                       primary ? ButtonStyle::kPrimary : ButtonStyle::kPlain});
  }
  float x = region.max.x - frame.px(16);
  for (std::size_t b = buttons.size(); b-- > 0;) {
    ImVec2 size = button_size(frame, buttons[b].label);
    x -= size.x;
    float y = std::floor((region.min.y + region.max.y - size.y) / 2);
    if (button(frame, buttons[b].id, buttons[b].label, {x, y}, buttons[b].style))
      run(buttons[b].action, frame, state);
    x -= frame.px(10);
  }
  return x;
}

}  // namespace

void draw_verdict_bar(Frame& frame, DeskState& state, Region region) {
  std::size_t marked = 0;
  if (frame.snapshot.report != nullptr) marked = frame.digest.marked;
  VerdictText verdict = verdict_of(frame.snapshot, frame.job, marked);
  begin_region(frame, "verdict", region, back_of(frame.theme, verdict.tone), false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = std::floor((region.min.y + region.max.y) / 2);
  float radius = frame.px(13);
  draw_sign(frame, draw, {region.min.x + frame.px(16) + radius, middle}, radius,
            sign_of(verdict.tone));
  float x = region.min.x + frame.px(54);
  float end = draw_buttons(frame, state, verdict, region) - frame.px(6);
  Measure title = [&](std::string_view t) { return text_width(frame.fonts.title, t); };
  Measure small = [&](std::string_view t) { return text_width(frame.fonts.small, t); };
  x += text_from(draw, frame.fonts.title, x, middle, frame.theme.text,
                 elide_middle(verdict.title, end - x, title));
  x += frame.px(10);
  Rgba quiet = mix(frame.theme.quiet, frame.theme.text, 0.35f);
  if (end - x > frame.px(60)) {
    bool fits = verdict.brief.empty() || small(verdict.detail) <= end - x;
    std::string shown = elide_middle(fits ? verdict.detail : verdict.brief, end - x, small);
    text_from(draw, frame.fonts.small, x, middle + frame.px(1), quiet, shown);
    if (shown != verdict.detail &&
        ImGui::IsMouseHoveringRect({x, region.min.y}, {end, region.max.y}))
      tooltip(frame, verdict.detail);
  }
  draw->AddLine({region.min.x, region.max.y - 1}, {region.max.x, region.max.y - 1},
                frame.theme.line);
  end_region();
}

}  // namespace shw
