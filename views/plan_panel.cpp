// The plan to review: what it will do, what it loses, what stands in for that, where it goes.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>

#include "views/actions.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

std::string loss_text(const Operation& operation) {
  if (operation.lossless && operation.bytes_moved == 0) return "loses nothing, moves no byte";
  if (operation.lossless) return "loses nothing, rewrites " + human_bytes(operation.bytes_moved);
  if (operation.elements_lost == 0) return "what was lost stays lost";
  return "loses " +
         plural(static_cast<std::uint64_t>(std::max<std::int64_t>(operation.elements_lost, 0)),
                "element");
}

void draw_operation(Frame& frame, Column& column, std::size_t number, const Operation& operation) {
  const ImFont* mono = frame.fonts.mono_small;
  Measure measure = [&](std::string_view t) { return text_width(mono, t); };
  float indent = frame.px(30), middle = column.y + frame.px(10);
  text_from(column.draw, mono, column.left, middle, frame.theme.quiet, fmt::format("{}.", number));
  Column inside{column.draw, column.left + indent, column.right, column.y};
  paragraph(frame, inside, frame.fonts.text, frame.theme.text, operation.text);
  inside.y += frame.px(4);
  std::string subject = operation.subjects.empty() ? operation.rule : operation.subjects.front();
  std::string more = operation.subjects.size() > 1
                         ? "  and " + human_count(operation.subjects.size() - 1) + " more"
                         : "";
  std::string loss = loss_text(operation);
  float loss_width = text_width(frame.fonts.small, loss);
  float room = inside.width() - loss_width - text_width(frame.fonts.small, more) - frame.px(24);
  float line = inside.y + frame.px(9);
  float used = text_from(column.draw, mono, inside.left, line, frame.theme.quiet,
                         elide_path(subject, room, measure));
  text_from(column.draw, frame.fonts.small, inside.left + used, line, frame.theme.quiet, more);
  text_until(column.draw, frame.fonts.small, column.right, line,
             operation.lossless            ? frame.theme.ok
             : operation.elements_lost > 0 ? frame.theme.warn
                                           : frame.theme.quiet,
             loss);
  column.y = inside.y + frame.px(34);
}

std::string summary_of(const Plan& plan) {
  std::uint64_t moved = 0, tiles = 0;
  std::int64_t lost = 0;
  for (const Operation& operation : plan.operations) {
    moved += operation.bytes_moved;
    tiles += static_cast<std::uint64_t>(std::max<std::int64_t>(operation.tiles, 0));
    lost += operation.elements_lost;
  }
  std::string text = plural(plan.operations.size(), "operation") + " on " +
                     plural(plan.tensors.size(), "tensor") + ", " + plural(tiles, "tile") + ". ";
  text += lost > 0 ? plural(static_cast<std::uint64_t>(lost), "element") +
                         (lost == 1 ? " is" : " are") + " lost; the certificate names every one. "
                   : "Nothing is lost. ";
  text += moved == 0 ? "No tensor byte moves." : human_bytes(moved) + " are rewritten.";
  return text;
}

std::string default_out(const Snapshot& snapshot) {
  std::string path = snapshot.said.checkpoint;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path + "-repaired";
}

// True when Enter was pressed in it.
bool draw_path(Frame& frame, Column& column, const char* id, const std::string& hint,
               std::string& text) {
  float height = frame.px(34);
  bool entered = text_field(frame, column.draw, id, hint.c_str(), {column.left, column.y},
                            {column.width(), height}, text);
  column.y += height + frame.px(8);
  return entered;
}

void draw_target(Frame& frame, DeskState& state, Column& column) {
  head(frame, column, "INTO A NEW DIRECTORY");
  draw_path(frame, column, "plan/out", default_out(frame.snapshot), state.out);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
            "The checkpoint that is open is not touched. What comes out is verified before it gets "
            "its name. "
            "In place swaps .metadata alone; Undo brings it back byte for byte.");
  column.y += frame.px(20);
}

bool loses_elements(const Plan& plan) {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(),
                     [](const PlannedTensor& tensor) { return tensor.lost_elements > 0; });
}

// What stands in for lost elements is the person's choice; a click plans anew.
void draw_fill(Frame& frame, DeskState& state, Column& column) {
  head(frame, column, "LOST ELEMENTS ARE FILLED WITH");
  const std::string& now = frame.snapshot.said.fill;
  bool other = state.fill_open || now.starts_with("from:");
  struct {
    const char *id, *label;
    bool chosen;
  } choices[] = {{"plan/fill-cast", "Weights for masters, else zeros",
                  !other && (now.empty() || now == "cast")},
                 {"plan/fill-zero", "Zeros", !other && now == "zero"},
                 {"plan/fill-from", "Another checkpoint", other}};
  float x = column.left;
  for (const auto& choice : choices) {
    bool clicked = button(frame, choice.id, choice.label, {x, column.y},
                          choice.chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet);
    x += button_size(frame, choice.label).x + frame.px(8);
    if (!clicked) continue;
    state.fill_open = &choice == &choices[2];
    if (!state.fill_open) frame.emit(PlanCommand{&choice == &choices[1] ? "zero" : "cast"});
  }
  column.y += frame.px(38);
  if (!other) return;
  if (draw_path(frame, column, "plan/fill-path",
                now.starts_with("from:") ? now.substr(5) : "path of a checkpoint, then Enter",
                state.fill_path) &&
      !state.fill_path.empty())
    frame.emit(PlanCommand{"from:" + state.fill_path});
  column.y += frame.px(4);
}

void draw_undecided(Frame& frame, Column& column, const Plan& plan) {
  if (plan.undecided.empty()) return;
  head(frame, column, "NOT MENDED BY THIS PLAN");
  std::size_t shown = 0;
  for (const Finding& finding : plan.undecided) {
    if (++shown > 4) break;
    paragraph(frame, column, frame.fonts.small, frame.theme.text,
              finding.rule + ": " + finding.cause);
    column.y += frame.px(6);
  }
  column.y += frame.px(14);
}

void draw_plan_buttons(Frame& frame, DeskState& state, Column& column) {
  float right = column.right;
  struct {
    const char *id, *label;
    Action action;
    ButtonStyle style;
  } buttons[] = {{"plan/apply", "Apply", Action::kApply, ButtonStyle::kPrimary},
                 {"plan/in-place", "In place", Action::kApplyInPlace, ButtonStyle::kPlain},
                 {"plan/close", "Cancel", Action::kPalette, ButtonStyle::kPlain}};
  for (auto& b : buttons) {
    if (b.action != Action::kPalette && !is_possible(b.action, frame, state)) continue;
    right -= button_size(frame, b.label).x;
    if (button(frame, b.id, b.label, {right, column.y}, b.style)) {
      if (b.action != Action::kPalette) run(b.action, frame, state);
      state.plan_open = false;
    }
    right -= frame.px(10);
  }
  column.y += frame.px(30);
}

}  // namespace

void draw_plan_panel(Frame& frame, DeskState& state) {
  const Plan* plan = frame.snapshot.plan.get();
  std::size_t shown = plan ? std::min<std::size_t>(plan->operations.size(), 5) : 0;
  Column column;
  if (!begin_overlay(frame, "##plan", {frame.px(720), state.plan_height}, column))
    state.plan_open = false;
  paragraph(frame, column, frame.fonts.title, frame.theme.text, "Review the repair");
  column.y += frame.px(6);
  if (plan == nullptr) {
    paragraph(frame, column, frame.fonts.text, frame.theme.quiet, "Making the plan…");
    end_overlay();
    return;
  }
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet, summary_of(*plan));
  column.y += frame.px(20);
  if (plan->empty()) {
    paragraph(frame, column, frame.fonts.text, frame.theme.text,
              "There is nothing that a plan can mend safely.");
    column.y += frame.px(20);
  }
  for (std::size_t i = 0; i < shown; ++i) draw_operation(frame, column, i + 1, plan->operations[i]);
  if (plan->operations.size() > shown) {
    paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
              "and " + human_count(plan->operations.size() - shown) + " more of the same kinds");
    column.y += frame.px(10);
  }
  draw_undecided(frame, column, *plan);
  if (loses_elements(*plan)) draw_fill(frame, state, column);
  column.y += frame.px(4);
  if (!plan->empty()) draw_target(frame, state, column);
  draw_plan_buttons(frame, state, column);
  state.plan_height += column.y + frame.px(22) - column.bottom;
  end_overlay();
}

}  // namespace shw
