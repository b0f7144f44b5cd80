// Editing of a plan and selection of its output folder.
#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>

#include "core/repair/run/estimate_text.h"
#include "views/actions.h"
#include "views/controls.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/panels/plan_parts.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

// A text input with a button; true if either is activated.
struct PathButton {
  const char* label = nullptr;
  const char* tip = nullptr;
};
bool draw_path_field_with_buttons(Frame& frame, Column& column, const char* id, const char* hint,
                                  const char* tip, std::string& text, PathButton first,
                                  PathButton second, bool* second_clicked) {
  Line line(frame, column);
  if (second.label != nullptr)
    *second_clicked = line.button_at_end(fmt::format("{}-{}", id, second.label).c_str(),
                                         second.label, second.tip);
  const bool go =
      line.button_at_end(fmt::format("{}-{}", id, first.label).c_str(), first.label, first.tip);
  return line.field(id, hint, text, tip) || go;
}

void draw_plan_text_editor(Frame& frame, UiState& state, Column& column) {
  const std::shared_ptr<const PlanEdit>& edit =
      frame.snapshot.edits->all[frame.snapshot.edits->now];
  if (edit->json.empty()) {
    caption(frame, column,
            "The plan is too long to be edited here: save it, edit the file, load it.",
            Gap::kSmall);
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
  column.take(frame.px(220 + 8));
  if (Line(frame, column, 30, Gap::kMedium)
          .button("plan/text-use", "Use this text",
                  "Reads the text as the plan. The plan before it can be taken back.") &&
      !state.plan.text.empty())
    frame.emit(EditPlanCommand{state.plan.text});
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
  Line line(frame, column, 30, Gap::kMedium);
  for (const auto& b : buttons) {
    if (is_possible(b.action, frame, state) &&
        line.button(b.id, b.label, b.action, ButtonStyle::kQuiet))
      run(b.action, frame, state);
  }
  line.elided_text_to_end(frame.fonts.small, frame.theme.quiet,
                          fmt::format("Edit {} of {}: {}", human_count(edits.now + 1),
                                      human_count(edits.all.size()), edits.edit().what));
}

// An error with its position, in red next to the input.
void draw_plan_error(Frame& frame, Column& column, const Error& error) {
  const bool stopped = error.kind == ErrorKind::kCancelled;
  std::string where = error.place.file.empty() ? error.place.tensor : error.place.file;
  std::string text = (where.empty() ? "" : where + ": ") + error.message;
  // The advice after a stop names commands for a terminal; the buttons below do the same.
  if (!error.advice.empty() && !stopped) text += ". " + with_desktop_terms(error.advice);
  signed_paragraph(frame, column, stopped ? Sign::kQuiet : Sign::kBad,
                   stopped ? frame.theme.quiet : frame.theme.bad, text, Gap::kMedium);
}

namespace {

void draw_repair_estimate(Frame& frame, Column& column, const RepairEstimate& outlook) {
  head(frame, column, "WHAT IT TAKES", "nothing was written to find out");
  for (const auto& [label, text] : estimate_rows(outlook))
    row(frame, column, label, text, frame.theme.text);
  gap(frame, column, Gap::kMedium);
}

// " 10.2 GB are written; 48 GB are free there."
std::string size_text(const verbs::RepairTarget& target) {
  std::string text = target.needs ? " " + written_text(target) + " are written" : "";
  if (target.free)
    text += (text.empty() ? " " : "; ") + human_bytes(*target.free) + " are free there";
  return text.empty() ? text : text + ".";
}

// Shows existing contents of the output folder before Apply is pressed.
void draw_place(Frame& frame, Column& column, const verbs::RepairTarget& target) {
  if (target.refused) return draw_plan_error(frame, column, *target.refused);
  caption(frame, column, "Will be " + target.path + "; nothing is there yet." + size_text(target),
          Gap::kTight);
  if (!target.earlier.empty())
    signed_paragraph(frame, column, Sign::kWarn, frame.theme.text,
                     target.earlier + " is there already: this would be a second result beside it.",
                     Gap::kSmall);
  if (!fits_on_disk(target))
    signed_paragraph(frame, column, Sign::kBad, frame.theme.bad,
                     target.is_needs_upper_bound
                         ? "The disk may have too little room for it. A dry run counts the bytes."
                         : "The disk has too little room for it.",
                     Gap::kSmall);
}

// The card of an unfinished repair is below this panel.
void draw_stopped_run(Frame& frame, UiState& state, Column& column) {
  const verbs::StoppedRun* run = first_stopped_run(frame.snapshot);
  if (run == nullptr) return;
  paragraph(
      frame, column, frame.fonts.small, frame.theme.warn,
      "A stopped repair is unfinished: " + printable(run->output) + ". It has a plan of its own.",
      Gap::kSmall);
  const bool can_resume = is_possible(Action::kResume, frame, state);
  const bool can_discard = is_possible(Action::kRollBack, frame, state);
  if (!can_resume && !can_discard) return;
  Line line(frame, column, 30, Gap::kMedium);
  if (can_resume && line.button("plan/resume", "Resume", Action::kResume))
    request_action(Action::kResume, frame, state);
  if (can_discard && line.button("plan/roll-back", "Discard", Action::kRollBack))
    request_action(Action::kRollBack, frame, state);
}

std::string device_time_text(const DeviceEstimate& device) {
  return device.failed.empty() ? "about " + human_seconds(device.seconds)
                               : "fails: " + device.failed;
}

std::string device_note(const RepairEstimate* outlook) {
  if (outlook == nullptr) return "A dry run lists the devices and the time of each.";
  if (outlook->devices.size() > 1) return "The bytes are the same on every device.";
  std::string note;
  for (const DeviceEstimate& device : outlook->devices)
    note = fmt::format("CPU, {}: {}. ", device.name, device_time_text(device));
  return outlook->no_gpu.empty() ? note : note + "No GPU can be used: " + outlook->no_gpu + ".";
}

// Available devices and, after a dry run, the predicted time.
void draw_devices(Frame& frame, UiState& state, Column& column) {
  const RepairEstimate* outlook = frame.snapshot.outlook.get();
  head(frame, column, "DEVICE");
  // Offers devices only after a dry run found a GPU, or if one was chosen before.
  const bool is_chosen = state.plan.device != "auto";
  const bool has_choice = is_chosen || (outlook != nullptr && outlook->devices.size() > 1);
  if (has_choice) {
    Line line(frame, column, 30, Gap::kMedium);
    const auto offer = [&](const std::string& device, const std::string& label) {
      const bool is_this = state.plan.device == device;
      if (line.button(("plan/device/" + device).c_str(), label,
                      "Makes the repair on this device. The bytes are the same on every device.",
                      is_this ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
        state.plan.device = device;
    };
    offer("auto", "The fastest");
    if (is_chosen && outlook == nullptr) offer(state.plan.device, state.plan.device);
    for (std::size_t i = 0; outlook != nullptr && i < outlook->devices.size(); ++i) {
      const DeviceEstimate& one = outlook->devices[i];
      offer(one.device, fmt::format("{}, {}: {}", one.device == "cpu" ? "CPU" : one.device,
                                    one.name, device_time_text(one)));
    }
  }
  caption(frame, column, device_note(outlook), Gap::kMedium);
}

}  // namespace

// The plan as file and text, for edits that have no switch.
void draw_plan_text(Frame& frame, UiState& state, Column& column) {
  if (frame.snapshot.edits == nullptr) return;
  gap(frame, column, Gap::kSmall);
  head(frame, column, "THE PLAN AS A FILE",
       "hash " + frame.snapshot.edits->edit().hash.substr(0, 12));
  bool load = false;
  bool save = draw_path_field_with_buttons(
      frame, column, "plan/file", "plan.json: save it here, or load it", "The file of the plan.",
      state.plan.file, {"Save", "Writes the plan into this file.  (Enter)"},
      {"Load", "Reads the plan from this file."}, &load);
  if (!state.plan.file.empty() && load) {
    frame.emit(LoadPlanCommand{state.plan.file});
  } else if (!state.plan.file.empty() && save) {
    frame.emit(SavePlanCommand{state.plan.file});
  }
  const PlanEdit& edit = frame.snapshot.edits->edit();
  if (!edit.file.empty()) {
    caption(frame, column, "Saved as " + edit.file + ". At a terminal: shardwright repair --plan.",
            Gap::kSmall);
  }
  const char* label = state.plan.text_open ? "Close the text" : "Edit as text";
  if (Line(frame, column, 30, Gap::kMedium)
          .button("plan/as-text", label, "Shows or hides the plan as JSON, to edit it.",
                  ButtonStyle::kQuiet))
    state.plan.text_open = !state.plan.text_open, state.plan.reveal_text = 3;
  if (state.plan.text_open) draw_plan_text_editor(frame, state, column);
  // The editor opens below the visible part of the panel.
  if (state.plan.text_open && state.plan.reveal_text-- > 0)
    ImGui::SetScrollY(ImGui::GetScrollMaxY());
}

void draw_plan_target(Frame& frame, UiState& state, Column& column) {
  const Snapshot& s = frame.snapshot;
  const std::string suffix = s.edits == nullptr ? std::string() : s.edits->edit().suffix;
  const std::string typed = typed_output(state);
  // The answer is lost if the job before it fails.
  const bool is_lost = examined_target(frame, state) == nullptr && !frame.job.running &&
                       frame.now > state.plan.asked_at + 2;
  if (state.plan.asked_target != typed || state.plan.asked_of != s.plan.get() ||
      state.plan.asked_suffix != suffix || is_lost) {
    state.plan.asked_target = typed;
    state.plan.asked_of = s.plan.get();
    state.plan.asked_suffix = suffix;
    state.plan.asked_at = frame.now;
    frame.emit(TargetCommand{typed});
  }
  head(frame, column, "INTO A NEW DIRECTORY");
  std::string hint = s.target != nullptr && s.target->typed_path.empty()
                         ? s.target->path
                         : "a new folder next to the checkpoint";
  bool dry = draw_path_field_with_buttons(
      frame, column, "plan/out", hint.c_str(),
      "The folder of the result, which does not exist yet.", state.out,
      {"Dry run", "Says what the repair takes. Writes nothing.  (Ctrl+D)"}, {}, nullptr);
  state.plan.out_has_keys = state.tabs.focused() == ImGui::GetID("##plan/out");
  if (dry) run(Action::kDryRun, frame, state);
  if (const auto* target = examined_target(frame, state)) draw_place(frame, column, *target);
  draw_stopped_run(frame, state, column);
  caption(frame, column,
          s.not_in_place
              ? "The checkpoint that is open is not touched. What comes out is verified before "
                "it gets its name."
              : "The checkpoint that is open is not touched. What comes out is verified before "
                "it gets its name. In place swaps .metadata alone; Undo brings it back byte for "
                "byte.",
          Gap::kMedium);
  draw_devices(frame, state, column);
  if (s.outlook != nullptr) draw_repair_estimate(frame, column, *s.outlook);
}

}  // namespace shw
