#include "views/parts.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

Rgba background_of_tone(const Theme& theme, Tone tone) {
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

// Hides buttons that the palette also offers, until the sentence next to them has room.
void make_room(const Frame& frame, const VerdictText& verdict, Region region,
               std::vector<BarButton>& buttons) {
  const std::string& words = verdict.brief.empty() ? verdict.detail : verdict.brief;
  const float needed = frame.px(54 + 10 + 22) + text_width(frame.fonts.title, verdict.title) +
                       text_width(frame.fonts.small, words);
  const auto room = [&] {
    float left = region.max.x - region.min.x;
    for (const BarButton& button : buttons)
      left -= button_size(frame, button.label).x + frame.px(10);
    return left;
  };
  for (const Action action :
       {Action::kCopyReport, Action::kExplain, Action::kCertificate, Action::kRun}) {
    if (room() >= needed) return;
    std::erase_if(buttons, [&](const BarButton& button) { return button.action == action; });
  }
}

// Right-aligned buttons; returns the left end.
float draw_buttons(Frame& frame, UiState& state, const VerdictText& verdict, Region region) {
  std::vector<BarButton> buttons;
  if (frame.snapshot.checkpoint != nullptr && is_possible(Action::kRun, frame, state))
    buttons.push_back({"bar/run", Action::kRun, "All steps", ButtonStyle::kPlain});
  bool findings = frame.snapshot.report != nullptr && !frame.snapshot.report->findings.empty();
  if (is_possible(Action::kUndo, frame, state)) {
    buttons.push_back({"bar/commit", Action::kCommit, "Keep it", ButtonStyle::kPlain});
    buttons.push_back({"bar/undo", Action::kUndo, "Undo", ButtonStyle::kPlain});
  }
  // On small screens buttons that the palette also offers are hidden in favour of text.
  float across = (region.max.x - region.min.x) / frame.scale;
  if (is_possible(Action::kCertificate, frame, state) && across >= 900)
    buttons.push_back(
        {"bar/certificate", Action::kCertificate, "Certificate", ButtonStyle::kPlain});
  if (findings && frame.snapshot.repaired == nullptr && across >= 900)
    buttons.push_back({"bar/report", Action::kCopyReport, "Copy report", ButtonStyle::kPlain});
  if (findings && across >= 560)
    buttons.push_back({"bar/explain", Action::kExplain, "Explain", ButtonStyle::kPlain});
  if (verdict.next) {
    bool primary = *verdict.next == Action::kReview || *verdict.next == Action::kVerify ||
                   *verdict.next == Action::kOpenRepaired;
    buttons.push_back({"bar/next", *verdict.next, verdict.next_label,
                       primary ? ButtonStyle::kPrimary : ButtonStyle::kPlain});
  }
  make_room(frame, verdict, region, buttons);
  float x = region.max.x - frame.px(16);
  for (std::size_t b = buttons.size(); b-- > 0;) {
    ImVec2 size = button_size(frame, buttons[b].label);
    x -= size.x;
    float y = std::floor((region.min.y + region.max.y - size.y) / 2);
    if (button(frame, buttons[b].id, buttons[b].label, buttons[b].action, {x, y}, buttons[b].style))
      request_action(buttons[b].action, frame, state);
    x -= frame.px(10);
  }
  return x;
}

// A single line, with the full text as tooltip if it is shortened.
void draw_quiet(Frame& frame, ImDrawList* draw, const std::string& text, const std::string& whole,
                Region region, float y) {
  const Measure small = measure_with(frame.fonts.small);
  std::string shown = elide_end(text, region.max.x - region.min.x, small);
  Rgba quiet = mix(frame.theme.quiet, frame.theme.text, 0.35f);
  text_from(draw, frame.fonts.small, region.min.x, y, quiet, shown);
  if (shown != whole && ImGui::IsMouseHoveringRect(region.min, region.max)) tooltip(frame, whole);
}

// "values (--data)" without the advice, which is in the tooltip.
std::string without_advice(std::string_view text) {
  std::string bare;
  int depth = 0;
  for (char c : text) {
    if (c == '(' && depth++ == 0 && bare.ends_with(' ')) bare.pop_back();
    if (depth == 0) bare += c;
    if (c == ')' && depth > 0) --depth;
  }
  return bare;
}

// Headline and detail, with the "Not checked" line below.
void draw_words(Frame& frame, ImDrawList* draw, const VerdictText& verdict, Region region) {
  const Measure title = measure_with(frame.fonts.title);
  float middle = std::floor((region.min.y + region.max.y) / 2);
  float line = verdict.unjudged.empty() ? middle : middle - frame.px(9);
  float x = region.min.x;
  x += text_from(draw, frame.fonts.title, x, line, frame.theme.text,
                 elide_end(verdict.title, region.max.x - x, title));
  x += frame.px(10);
  float split = verdict.unjudged.empty() ? region.max.y : middle;
  if (region.max.x - x > frame.px(60)) {
    bool fits =
        verdict.brief.empty() || text_width(frame.fonts.small, verdict.detail) <= region.max.x - x;
    draw_quiet(frame, draw, fits ? verdict.detail : verdict.brief, verdict.detail,
               {{x, region.min.y}, {region.max.x, split}}, line + frame.px(1));
  }
  if (verdict.unjudged.empty()) return;
  bool whole_fits = text_width(frame.fonts.small, verdict.unjudged) <= region.max.x - region.min.x;
  draw_quiet(frame, draw, whole_fits ? verdict.unjudged : without_advice(verdict.unjudged),
             verdict.unjudged, {{region.min.x, split}, region.max}, middle + frame.px(12));
}

}  // namespace

void draw_verdict_bar(Frame& frame, UiState& state, Region region) {
  VerdictText verdict =
      verdict_of(frame.snapshot, shown_job(frame.job, frame.concurrent_jobs), *frame.digest.about);
  begin_region(frame, "verdict", region, background_of_tone(frame.theme, verdict.tone), false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = std::floor((region.min.y + region.max.y) / 2);
  float radius = frame.px(13);
  draw_sign(frame, draw, {region.min.x + frame.px(16) + radius, middle}, radius,
            sign_of(verdict.tone));
  Region words{{region.min.x + frame.px(54), region.min.y},
               {draw_buttons(frame, state, verdict, region) - frame.px(6), region.max.y}};
  draw_words(frame, draw, verdict, words);
  draw->AddLine({region.min.x, region.max.y - 1}, {region.max.x, region.max.y - 1},
                frame.theme.line);
  end_region();
}

}  // namespace shw
