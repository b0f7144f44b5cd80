// The explanation of a rule with its drawing, and the possible meanings of a pasted error
// message.
#include <imgui.h>
#include <imgui_stdlib.h>
#include <algorithm>

#include "core/report/explanation.h"
#include "core/rules/rules.h"
#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

constexpr std::size_t kShownHypotheses = 6;

template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    visit(line);
  }
}

// A drawing of fixed-width lines; scaled down in narrow panels, because it cannot be
// wrapped.
void draw_fixed_width_drawing(Frame& frame, Column& column, std::string_view drawing) {
  const ImFont* font = frame.fonts.mono_small;
  float wide = 1;
  auto each_line = [&](auto&& visit) {
    for_each_line(drawing, [&](std::string_view line) {
      visit(line.starts_with("  ") ? line.substr(2) : line);
    });
  };
  each_line([&](std::string_view line) { wide = std::max(wide, text_width(font, line)); });
  float room = column.width() - frame.px(24), size = font_size(font) * std::min(1.0f, room / wide);
  float top = column.y;
  gap(frame, column, Gap::kMedium);
  ImDrawList* draw = column.draw;
  draw->ChannelsSplit(2);
  draw->ChannelsSetCurrent(1);
  bool begun = false;
  each_line([&](std::string_view line) {
    if (line.empty() && !begun) return;
    begun = true;
    std::string buffer;
    line = shown_text(font, line, buffer);
    if (!line.empty())
      draw->AddText(face(font), size, {column.left + frame.px(12), std::floor(column.y)},
                    frame.theme.text, line.data(), line.data() + line.size());
    column.take(std::floor(size));
  });
  gap(frame, column, Gap::kMedium);
  draw->ChannelsSetCurrent(0);
  draw->AddRectFilled({column.left, top}, {column.right, column.y}, frame.theme.field, frame.px(5));
  draw->ChannelsMerge();
  gap(frame, column, Gap::kMedium);
}

void draw_lesson(Frame& frame, Column& column, const Rule& rule) {
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.quiet, rule.id, Gap::kMedium);
  body(frame, column, rule.teaches, Gap::kMedium);
  if (!rule.lesson.drawing.empty()) draw_fixed_width_drawing(frame, column, rule.lesson.drawing);
  if (!rule.lesson.remedy.empty()) {
    head(frame, column, "REMEDY");
    body(frame, column, rule.lesson.remedy, Gap::kMedium);
  }
  if (!rule.lesson.link.empty())
    caption(frame, column, "Reported in " + std::string(rule.lesson.link), Gap::kSmall);
}

void draw_finding_cause(Frame& frame, Column& column, const Finding& finding) {
  head(frame, column, "HERE");
  body(frame, column, with_desktop_terms(finding.cause), Gap::kMedium);
}

const Finding* finding_to_explain(const Snapshot& snapshot) {
  if (snapshot.report == nullptr || snapshot.report->findings.empty()) return nullptr;
  const auto& findings = snapshot.report->findings;
  return &findings[std::min(snapshot.finding.value_or(0), findings.size() - 1)];
}

void draw_hypothesis(Frame& frame, UiState& state, Column& column, const Hypothesis& one,
                     std::size_t at) {
  Rgba ink = one.rank == 1 ? frame.theme.text : frame.theme.quiet;
  paragraph(frame, column, frame.fonts.strong, ink,
            std::string(likelihood_text(one.confidence)) + ": " + printable(one.title));
  Column inside = indented(frame, column, 16);
  gap(frame, inside, Gap::kTight);
  std::string_view side = fault_side_text(one.wrong);
  if (!side.empty()) caption(frame, inside, side);
  if (one.rank == 1)
    paragraph(frame, inside, frame.fonts.small, frame.theme.text, printable(one.text));
  paragraph(frame, inside, frame.fonts.small, frame.theme.text,
            "What decides: " + printable(one.decide), Gap::kSmall);
  Line line(frame, inside, 22, Gap::kMedium);
  std::string n = std::to_string(at);
  if (!one.command.empty() &&
      line.chip_button(("meaning/copy/" + n).c_str(), "Copy the command", one.command)) {
    ImGui::SetClipboardText(one.command.c_str());
    show_toast(frame, state, "Copied: " + one.command);
  }
  if (one.rule != nullptr && line.chip_button(("meaning/rule/" + n).c_str(), "Explain the rule",
                                              "Shows what the rule looks for, with a drawing.")) {
    state.panel_state.lesson = one.rule->id;
    state.explain_open = true;
    state.panel_state.errors_open = false;
  }
  column.y = inside.y;
}

void draw_explained_message(Frame& frame, UiState& state, Column& column,
                            const ExplainedText& explained) {
  const Explanation& explanation = explained.explanation;
  if (explanation.parsed.messages.empty()) {
    paragraph(frame, column, frame.fonts.text, frame.theme.warn,
              "This message is not known, so nothing is said about it.");
    if (!explained.nearest.empty())
      caption(frame, column, "The nearest that is: " + explained.nearest);
    gap(frame, column, Gap::kMedium);
    return;
  }
  if (explanation.hypotheses.empty()) {
    body(frame, column,
         "The two shapes are equal: this message is not what stopped the load. Paste the "
         "lines after it.",
         Gap::kMedium);
    return;
  }
  paragraph(frame, column, frame.fonts.title, frame.theme.text, lead_of(explanation), Gap::kMedium);
  head(frame, column, "WHAT WAS READ");
  const std::string read = parsed_message_text(explanation);
  for_each_line(read, [&](std::string_view line) {
    if (!line.empty())
      paragraph(frame, column, frame.fonts.mono_small, frame.theme.quiet, line.substr(2));
  });
  gap(frame, column, Gap::kMedium);
  head(frame, column, "WHAT IT CAN MEAN");
  const auto& all = explanation.hypotheses;
  std::size_t shown = std::min(all.size(), kShownHypotheses);
  for (std::size_t i = 0; i < shown; ++i) draw_hypothesis(frame, state, column, all[i], i);
  if (shown < all.size())
    caption(frame, column,
            "and " + human_count(all.size() - shown) +
                " more, less likely: shardwright explain - --json");
  if (!explanation.decide.empty()) {
    body(frame, column, explanation.decide, Gap::kMedium);
  }
}

// A multi-line input; returns true if the text changed.
bool error_field(Frame& frame, UiState& state, Column& column) {
  ImVec2 size{column.width(), frame.px(110)};
  push_font(frame.fonts.mono_small);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, frame.theme.field);
  ImGui::PushStyleColor(ImGuiCol_Border, frame.theme.control);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1.0f);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2{frame.px(10), frame.px(8)});
  ImGui::SetCursorScreenPos({column.left, column.y});
  if (state.panel_state.errors_wanted) ImGui::SetKeyboardFocusHere();
  state.panel_state.errors_wanted = false;
  bool changed = edit_lines(frame, "meaning/text", state.panel_state.error_text, size,
                            "The message of a loader: one line or whole tracebacks.");
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
  ImGui::PopFont();
  column.take(size.y + frame.px(16));
  return changed;
}

}  // namespace

void draw_explain(Frame& frame, UiState& state) {
  const Finding* finding = finding_to_explain(frame.snapshot);
  const std::string& lesson = state.panel_state.lesson;
  const Rule* rule = !lesson.empty()      ? find_rule(lesson)
                     : finding != nullptr ? find_rule(finding->rule)
                                          : nullptr;
  OverlayPanel panel;
  std::string_view title = rule != nullptr ? std::string_view(rule->title) : "Nothing to explain";
  if (!begin_panel(frame, state, "##explain", 680, state.explain_height, title, panel))
    state.explain_open = false;
  if (rule != nullptr) draw_lesson(frame, panel.content, *rule);
  if (lesson.empty() && finding != nullptr) draw_finding_cause(frame, panel.content, *finding);
  state.explain_height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (line.button("explain/error", "Explain an error message", Action::kExplainError)) {
    state.explain_open = false;
    run(Action::kExplainError, frame, state);
  }
  if (close_button(line, "explain/close")) state.explain_open = false;
  if (!state.explain_open) state.panel_state.lesson.clear();
  end_overlay();
}

void draw_error_meaning(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##meaning", 720, panel_state.errors_height,
                   "What an error message can mean", panel))
    panel_state.errors_open = false;
  Column& column = panel.content;
  caption(frame, column,
          "Paste what the loader printed, a line or the tracebacks of all ranks. Nothing is "
          "opened for it and nothing leaves this machine.",
          Gap::kMedium);
  if (error_field(frame, state, column) && !panel_state.error_text.empty())
    frame.emit(ExplainErrorCommand{panel_state.error_text});
  // An answer may belong to an earlier text; it is shown until the right one arrives.
  if (frame.snapshot.explained != nullptr && !panel_state.error_text.empty())
    draw_explained_message(frame, state, column, *frame.snapshot.explained);
  panel_state.errors_height = end_panel_content(frame, panel);
  float wide = button_size(frame, "Close").x;
  if (button(frame, "meaning/close", "Close", "Closes this panel.  (Esc)",
             {panel.all.right - wide, panel.all.y}))
    panel_state.errors_open = false;
  end_overlay();
}

}  // namespace shw
