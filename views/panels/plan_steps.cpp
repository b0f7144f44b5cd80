// The list of plan steps in full.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>

#include "core/model/evidence.h"
#include "core/repair/run/estimate_text.h"
#include "views/controls.h"
#include "views/panels/plan_parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kFoldedTensors = 3;

struct Step {
  std::size_t index = 0;
  const Operation* operation = nullptr;
  bool off = false;
  bool can_switch = false;
};

std::string loss_text(const Operation& operation) {
  if (operation.lossless && operation.bytes_moved == 0) return "loses nothing, moves no byte";
  if (operation.lossless) return "loses nothing, rewrites " + human_bytes(operation.bytes_moved);
  if (operation.elements_lost == 0) return "what was lost stays lost";
  return "loses " +
         plural(static_cast<std::uint64_t>(std::max<std::int64_t>(operation.elements_lost, 0)),
                "element");
}

// A check box; the state is visible without colour.
bool draw_switch(Frame& frame, ImDrawList* draw, const std::string& id, ImVec2 at, bool on) {
  float size = frame.px(18);
  ImGui::SetCursorScreenPos(at);
  bool clicked = control(frame, id, {size, size},
                         on ? "Switches this step off, and steps that need it."
                            : "Switches this step on, and steps that it needs.");
  ImVec2 end{at.x + size, at.y + size};
  const Theme& theme = frame.theme;
  draw->AddRectFilled(at, end, ImGui::IsItemHovered() ? theme.raised_hover : theme.field,
                      frame.px(4));
  draw->AddRect(at, end, on ? theme.quiet : theme.control, frame.px(4));
  if (on) {
    ImVec2 a{at.x + size * 0.22f, at.y + size * 0.52f}, b{at.x + size * 0.42f, at.y + size * 0.74f},
        c{at.x + size * 0.80f, at.y + size * 0.26f};
    draw->AddLine(a, b, theme.text, frame.px(2));
    draw->AddLine(b, c, theme.text, frame.px(2));
  }
  focus_ring(frame, draw);
  return clicked;
}

// Draws only the visible names.
void draw_names(Frame& frame, Column& column, const std::vector<std::string>& names,
                std::size_t count) {
  const ImFont* mono = frame.fonts.mono_small;
  float line = frame.px(20), top = ImGui::GetWindowPos().y;
  float bottom = top + ImGui::GetWindowHeight();
  for (std::size_t i = 0; i < count; ++i) {
    float y = column.y + line * static_cast<float>(i);
    if (y > bottom) break;
    if (y + line < top) {  // skip to the first visible row
      auto above = static_cast<std::size_t>((top - y) / line);
      i += above > 1 ? above - 1 : 0;
      continue;
    }
    text_from(column.draw, mono, column.left, y + line / 2, frame.theme.quiet,
              elide_path(names[i], column.width(), measure_with(mono)));
  }
  column.take(line * static_cast<float>(count));
}

// The button that expands a long list of tensors, above the list so that it does not move.
void draw_unfold(Frame& frame, UiState& state, const Column& column, float middle,
                 const Step& step) {
  std::size_t count = step.operation->subjects.size();
  if (count <= kFoldedTensors) return;
  bool open = state.plan.unfolded.contains(step.index);
  std::string label = open ? "show fewer" : fmt::format("show all {}", human_count(count));
  float width = chip_width(frame, label);
  std::string id = fmt::format("plan/tensors/{}", step.index + 1);
  if (!chip_button(frame, id.c_str(), column.right - width, middle, label, &width,
                   "Shows all names of this step, or the first ones."))
    return;
  if (open)
    state.plan.unfolded.erase(step.index);
  else
    state.plan.unfolded.insert(step.index);
}

void draw_subjects(Frame& frame, UiState& state, Column& column, const Step& step) {
  const std::vector<std::string>& names = step.operation->subjects;
  bool all = state.plan.unfolded.contains(step.index) || names.size() <= kFoldedTensors;
  draw_names(frame, column, names, all ? names.size() : kFoldedTensors);
  if (all) return;
  caption(frame, column, "and " + human_count(names.size() - kFoldedTensors) + " more");
}

void draw_step(Frame& frame, UiState& state, Column& column, const Step& step) {
  const Theme& theme = frame.theme;
  const Operation& operation = *step.operation;
  float indent = frame.px(58);
  std::string id = fmt::format("plan/step/{}", step.index + 1);
  if (step.can_switch && draw_switch(frame, column.draw, id, {column.left, column.y}, !step.off))
    frame.emit(StepCommand{step.index, step.off});
  text_from(column.draw, frame.fonts.mono_small, column.left + frame.px(28), column.y + frame.px(9),
            theme.quiet, fmt::format("{}.", step.index + 1));
  Column inside{column.draw, column.left + indent, column.right, column.y, column.bottom};
  std::string text = step.off ? "Off: " + operation.text : operation.text;
  paragraph(frame, inside, frame.fonts.text, step.off ? theme.quiet : theme.text, text,
            Gap::kTight);
  std::string loss = step.off ? "stays as it is saved" : loss_text(operation);
  bool loses = !step.off && !operation.lossless;
  if (loses)
    draw_sign(frame, column.draw, {inside.left + frame.px(7), inside.y + frame.px(8)}, frame.px(7),
              Sign::kBad);
  text_from(column.draw, loses ? frame.fonts.strong : frame.fonts.small,
            inside.left + (loses ? frame.px(20) : 0), inside.y + frame.px(8),
            loses      ? theme.bad
            : step.off ? theme.quiet
                       : theme.ok,
            loss);
  draw_unfold(frame, state, inside, inside.y + frame.px(8), step);
  inside.take(frame.px(22));
  draw_subjects(frame, state, inside, step);
  column.y = inside.y + frame.px(12);
}

}  // namespace

void draw_plan_steps(Frame& frame, UiState& state, Column& column) {
  const Snapshot& s = frame.snapshot;
  const PlanEdit* edit = s.edits == nullptr ? nullptr : &s.edits->edit();
  const Plan& whole = edit == nullptr ? *s.plan : *edit->whole;
  for (std::size_t i = 0; i < whole.operations.size(); ++i) {
    bool off = edit != nullptr && i < edit->off.size() && edit->off[i];
    draw_step(frame, state, column,
              {i, &whole.operations[i], off, edit != nullptr && !is_plan_executed(s)});
  }
}

void draw_plan_form(Frame& frame, Column& column) {
  const PlanEdit* edit = frame.snapshot.edits == nullptr ? nullptr : &frame.snapshot.edits->edit();
  if (edit == nullptr || edit->written == nullptr) return;
  head(frame, column, "WHAT IS DONE ON THE WAY");
  const std::size_t repairs = edit->plan->operations.size();  // they are listed with switches
  const std::vector<std::string>& steps = edit->written->steps;
  for (std::size_t i = repairs; i < steps.size(); ++i) body(frame, column, steps[i]);
  gap(frame, column, Gap::kSmall);
  for (const std::string& note : edit->notes) caption(frame, column, note);
  for (const std::string& cast : edit->written->out_of_range)
    paragraph(frame, column, frame.fonts.small, frame.theme.warn, cast);
  if (const auto& others = edit->written->of_other_ranks; !others.empty())
    paragraph(frame, column, frame.fonts.small, frame.theme.warn, left_out_entries_text(others));
  gap(frame, column, Gap::kMedium);
}

void draw_unrepaired_findings(Frame& frame, Column& column) {
  const Plan& plan = *frame.snapshot.plan;
  if (plan.undecided.empty()) return;
  head(frame, column, "STAYS WRONG");
  for (const Finding& finding : plan.undecided) {
    std::string why;
    if (const auto* reason = find_evidence<std::string>(finding, "not_repaired_because"))
      why = " Not mended: " + *reason + ".";
    signed_paragraph(frame, column, finding.severity == Severity::kError ? Sign::kBad : Sign::kWarn,
                     frame.theme.text, finding.rule + ": " + finding.cause + why, Gap::kTight);
    Column inside = indented(frame, column, 24);
    draw_names(frame, inside, finding.subjects, std::min(finding.subjects.size(), kFoldedTensors));
    if (finding.subjects.size() > kFoldedTensors)
      caption(frame, inside,
              "and " + human_count(finding.subjects.size() - kFoldedTensors) + " more");
    column.y = inside.y + frame.px(10);
  }
  gap(frame, column, Gap::kSmall);
}

}  // namespace shw
