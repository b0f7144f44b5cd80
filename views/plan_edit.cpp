// Editing of a plan and selection of its output folder.
#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "core/repair/run/outlook_words.h"
#include "views/actions.h"
#include "views/controls.h"
#include "views/imgui_versions.h"
#include "views/plan_parts.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

// A text input with a button; true if either is activated.
struct PathButton {
  const char* label = nullptr;
  const char* tip = nullptr;
};
bool path_with(Frame& frame, Column& column, const char* id, const char* hint, const char* tip,
               std::string& text, PathButton first, PathButton second, bool* second_clicked) {
  float gap = frame.px(8), height = frame.px(30);
  float wide = column.width() - button_size(frame, first.label).x - gap;
  if (second.label != nullptr) wide -= button_size(frame, second.label).x + gap;
  bool go =
      text_field(frame, column.draw, id, hint, {column.left, column.y}, {wide, height}, text, tip);
  float x = column.left + wide + gap;
  go = button(frame, fmt::format("{}-{}", id, first.label).c_str(), first.label, first.tip,
              {x, column.y}) ||
       go;
  x += button_size(frame, first.label).x + gap;
  if (second.label != nullptr)
    *second_clicked = button(frame, fmt::format("{}-{}", id, second.label).c_str(), second.label,
                             second.tip, {x, column.y});
  column.y += height + frame.px(8);
  return go;
}

void draw_as_text(Frame& frame, UiState& state, Column& column) {
  const std::shared_ptr<const PlanEdit>& edit =
      frame.snapshot.edits->all[frame.snapshot.edits->now];
  if (edit->json.empty()) {
    paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
              "The plan is too long to be edited here: save it, edit the file, load it.");
    column.y += frame.px(8);
    return;
  }
  if (state.plan.text_of.lock() != edit) {
    state.plan.text = edit->json;
    state.plan.text_of = edit;
  }
  push_font(frame.fonts.mono_small);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, frame.theme.field);
  ImGui::SetCursorScreenPos({column.left, column.y});
  edit_lines(frame, "plan/text", state.plan.text, {column.width(), frame.px(220)},
             "The plan as JSON.");
  ImGui::PopStyleColor();
  ImGui::PopFont();
  column.y += frame.px(228);
  if (button(frame, "plan/text-use", "Use this text",
             "Reads the text as the plan. The plan before it can be taken back.",
             {column.left, column.y}) &&
      !state.plan.text.empty())
    frame.emit(EditPlanCommand{state.plan.text});
  column.y += frame.px(40);
}

}  // namespace

// Undo history of an edited plan.
void draw_plan_history(Frame& frame, UiState& state, Column& column) {
  if (frame.snapshot.edits == nullptr || frame.snapshot.edits->all.size() < 2) return;
  const PlanEdits& edits = *frame.snapshot.edits;
  struct {
    const char *id, *label;
    Action action;
  } buttons[] = {{"plan/undo", "Undo", Action::kPlanUndo},
                 {"plan/redo", "Redo", Action::kPlanRedo}};
  float x = column.left, middle = column.y + frame.px(15);
  for (const auto& b : buttons) {
    if (!is_possible(b.action, frame, state)) continue;
    if (button(frame, b.id, b.label, b.action, {x, column.y}, ButtonStyle::kQuiet))
      run(b.action, frame, state);
    x += button_size(frame, b.label).x + frame.px(8);
  }
  std::string text =
      fmt::format("Edit {} of {}: {}", edits.now + 1, edits.all.size(), edits.edit().what);
  Measure measure = [&](std::string_view t) { return text_width(frame.fonts.small, t); };
  text_from(column.draw, frame.fonts.small, x, middle, frame.theme.quiet,
            elide_middle(text, column.right - x, measure));
  column.y += frame.px(42);
}

// An error with its position, in red next to the input.
void draw_plan_error(Frame& frame, Column& column, const Error& error) {
  Column inside = column;
  inside.left += frame.px(24);
  bool stopped = error.kind == ErrorKind::kCancelled;
  draw_sign(frame, column.draw, {column.left + frame.px(8), column.y + frame.px(8)}, frame.px(7),
            stopped ? Sign::kQuiet : Sign::kBad);
  std::string where = error.place.file.empty() ? error.place.tensor : error.place.file;
  std::string text = (where.empty() ? "" : where + ": ") + error.message;
  // The advice after a stop names commands for a terminal; the buttons below do the same.
  if (!error.advice.empty() && !stopped) text += ". " + on_desk(error.advice);
  paragraph(frame, inside, frame.fonts.small, stopped ? frame.theme.quiet : frame.theme.bad, text);
  column.y = inside.y + frame.px(10);
}

namespace {

void draw_outlook(Frame& frame, Column& column, const RepairOutlook& outlook) {
  head(frame, column, "WHAT IT TAKES", "nothing was written to find out");
  for (const auto& [label, text] : rows_in_words(outlook))
    row(frame, column, label, text, frame.theme.text);
  column.y += frame.px(10);
}

// Shows existing contents of the output folder before Apply is pressed.
void draw_place(Frame& frame, UiState& state, Column& column, const verbs::RepairTarget& target) {
  if (target.refused) return draw_plan_error(frame, column, *target.refused);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
            "Will be " + target.path + "; nothing is there yet.");
  column.y += frame.px(4);
  if (!target.half_made.empty()) {
    paragraph(frame, column, frame.fonts.small, frame.theme.warn,
              "A repair that was stopped or is still running left its work next to it: " +
                  target.half_made.front() + ".");
    column.y += frame.px(6);
    if (is_possible(Action::kResume, frame, state)) {
      if (button(frame, "plan/resume", "Resume", Action::kResume, {column.left, column.y}))
        run(Action::kResume, frame, state);
      float x = column.left + button_size(frame, "Resume").x + frame.px(8);
      if (button(frame, "plan/roll-back", "Discard", Action::kRollBack, {x, column.y},
                 ButtonStyle::kQuiet))
        run(Action::kRollBack, frame, state);
      column.y += frame.px(40);
    }
  }
}

std::string takes_text(const DeviceOutlook& device) {
  return device.failed.empty() ? "about " + human_seconds(device.seconds)
                               : "fails: " + device.failed;
}

std::string device_note(const RepairOutlook* outlook) {
  if (outlook == nullptr) return "A dry run lists the devices and the time of each.";
  if (outlook->devices.size() > 1) return "The bytes are the same on every device.";
  std::string note;
  for (const DeviceOutlook& device : outlook->devices)
    note = fmt::format("CPU, {}: {}. ", device.name, takes_text(device));
  return outlook->no_gpu.empty() ? note : note + "No GPU can be used: " + outlook->no_gpu + ".";
}

// Available devices and, after a dry run, the predicted time.
void draw_devices(Frame& frame, UiState& state, Column& column) {
  const RepairOutlook* outlook = frame.snapshot.outlook.get();
  head(frame, column, "DEVICE");
  float x = column.left;
  auto offer = [&](const std::string& device, const std::string& label) {
    float wide = button_size(frame, label).x;
    if (x > column.left && x + wide > column.right) {
      x = column.left;
      column.y += frame.px(36);
    }
    bool chosen = state.plan.device == device;
    if (button(frame, ("plan/device/" + device).c_str(), label,
               "Makes the repair on this device. The bytes are the same on every device.",
               {x, column.y}, chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
      state.plan.device = device;
    x += wide + frame.px(8);
  };
  // A choice is offered only where there is one: a dry run looks for GPUs.
  const bool is_chosen = state.plan.device != "auto";
  const bool has_choice = is_chosen || (outlook != nullptr && outlook->devices.size() > 1);
  if (has_choice) offer("auto", "The fastest");
  if (is_chosen && outlook == nullptr) offer(state.plan.device, state.plan.device);
  for (std::size_t i = 0; has_choice && outlook != nullptr && i < outlook->devices.size(); ++i) {
    const DeviceOutlook& one = outlook->devices[i];
    offer(one.device, fmt::format("{}, {}: {}", one.device == "cpu" ? "CPU" : one.device, one.name,
                                  takes_text(one)));
  }
  if (has_choice) column.y += frame.px(40);
  const std::string said = device_note(outlook);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet, said);
  column.y += frame.px(12);
}

}  // namespace

// The plan as file and text, for edits that have no switch.
void draw_plan_text(Frame& frame, UiState& state, Column& column) {
  if (frame.snapshot.edits == nullptr) return;
  column.y += frame.px(6);
  head(frame, column, "THE PLAN AS A FILE",
       "hash " + frame.snapshot.edits->edit().hash.substr(0, 12));
  bool load = false;
  bool save = path_with(frame, column, "plan/file", "plan.json: save it here, or load it",
                        "The file of the plan.", state.plan.file,
                        {"Save", "Writes the plan into this file.  (Enter)"},
                        {"Load", "Reads the plan from this file."}, &load);
  if (!state.plan.file.empty() && load) {
    frame.emit(LoadPlanCommand{state.plan.file});
  } else if (!state.plan.file.empty() && save) {
    frame.emit(SavePlanCommand{state.plan.file});
  }
  const PlanEdit& edit = frame.snapshot.edits->edit();
  if (!edit.file.empty()) {
    paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
              "Saved as " + edit.file + ". At a terminal: shardwright repair --plan.");
    column.y += frame.px(6);
  }
  const char* label = state.plan.text_open ? "Close the text" : "Edit as text";
  if (button(frame, "plan/as-text", label, "Shows or hides the plan as JSON, to edit it.",
             {column.left, column.y}, ButtonStyle::kQuiet))
    state.plan.text_open = !state.plan.text_open, state.plan.reveal_text = 3;
  column.y += frame.px(40);
  if (state.plan.text_open) draw_as_text(frame, state, column);
  // The editor opens below the visible part of the panel.
  if (state.plan.text_open && state.plan.reveal_text-- > 0)
    ImGui::SetScrollY(ImGui::GetScrollMaxY());
}

void draw_plan_target(Frame& frame, UiState& state, Column& column) {
  const Snapshot& s = frame.snapshot;
  const std::string suffix = s.edits == nullptr ? std::string() : s.edits->edit().suffix;
  if (state.plan.asked_target != state.out || state.plan.asked_of != s.checkpoint.get() ||
      state.plan.asked_suffix != suffix) {
    state.plan.asked_target = state.out;
    state.plan.asked_of = s.checkpoint.get();
    state.plan.asked_suffix = suffix;
    frame.emit(TargetCommand{state.out});
  }
  head(frame, column, "INTO A NEW DIRECTORY");
  std::string hint = s.target != nullptr && s.target->typed_path.empty()
                         ? s.target->path
                         : "a new folder next to the checkpoint";
  bool dry =
      path_with(frame, column, "plan/out", hint.c_str(),
                "The folder of the result, which does not exist yet.", state.out,
                {"Dry run", "Says what the repair takes. Writes nothing.  (Ctrl+D)"}, {}, nullptr);
  if (dry) run(Action::kDryRun, frame, state);
  if (s.target != nullptr && s.target->typed_path == state.out)
    draw_place(frame, state, column, *s.target);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
            s.not_in_place
                ? "The checkpoint that is open is not touched. What comes out is verified before "
                  "it gets its name."
                : "The checkpoint that is open is not touched. What comes out is verified before "
                  "it gets its name. In place swaps .metadata alone; Undo brings it back byte for "
                  "byte.");
  column.y += frame.px(12);
  draw_devices(frame, state, column);
  if (s.outlook != nullptr) draw_outlook(frame, column, *s.outlook);
}

}  // namespace shw
