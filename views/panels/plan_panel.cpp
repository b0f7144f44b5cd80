// The repair panel: steps, losses, fill values and output folder.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <iterator>

#include "core/io/path_suffix.h"
#include "core/repair/run/estimate_text.h"
#include "core/rules/unreadable.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/plan_parts.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

// True if a finding has a remedy, and its diagnosis stayed on the machine that made it.
bool is_diagnosed_remotely(const Snapshot& snapshot) {
  return snapshot.report != nullptr && snapshot.report->lacks_diagnoses &&
         std::ranges::any_of(snapshot.plan->undecided, [](const Finding& finding) {
           return finding.remedy && finding.diagnoses.empty() && finding.entries.empty();
         });
}

std::string summary_of(const Frame& frame) {
  const Snapshot& snapshot = frame.snapshot;
  const Plan& plan = *snapshot.plan;
  bool all_off = plan.empty() && snapshot.edits && !snapshot.edits->edit().whole->empty();
  if (all_off) return "Every step is switched off: nothing would be repaired.";
  std::string text = plan.repairs() ? summary_text_of(plan) : std::string();
  const verbs::StepsEstimate* written =
      snapshot.edits == nullptr ? nullptr : snapshot.edits->edit().written.get();
  if (written == nullptr && plan.empty() && plan.undecided.empty())
    return "No finding asks for a repair. What was not checked is named at the top.";
  if (written == nullptr && plan.empty() && !plan.undecided.empty()) {
    const std::string unreadable = unreadable_text(frame.digest.about->unreadable);
    return (is_diagnosed_remotely(snapshot) ? "What was found over there is planned over there."
                                            : "No step mends this safely.") +
           (unreadable.empty() ? "" : " " + unreadable + ".");
  }
  if (written == nullptr) return text.empty() ? summary_text_of(plan) : text;
  return text + (text.empty() ? "" : " ") +
         fmt::format("{}, {} as {}: {} made, {} kept as they are.",
                     plural(written->tensors, "tensor"), human_bytes(written->bytes_written),
                     written->format, plural(written->tiles_made, "tile"),
                     human_count(written->tiles_kept));
}

// Decided by steps, because a plan may have too many tensors for a frame.
bool loses_elements(const Plan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(),
                     [](const Operation& step) { return step.elements_lost > 0; });
}

// True if data is missing or truncated: then a plan exists only with a fill.
bool has_unreadable_tensors(const Frame& frame) {
  return frame.digest.about != nullptr && frame.digest.about->unreadable.tensors > 0;
}

// The checkpoint that is offered for filling: the reference, or the nearest step of the run that
// lost no file. Empty: none is known.
std::string suggested_fill_source(const Snapshot& snapshot) {
  if (snapshot.reference != nullptr) return snapshot.options.against;
  if (snapshot.run == nullptr) return {};
  const auto& steps = snapshot.run->steps;  // newest first
  const auto now = std::ranges::find(steps, snapshot.options.checkpoint, &verbs::RunStep::path);
  if (now == steps.end()) return {};
  const auto is_whole = [](const verbs::RunStep& step) {
    return step.is_known && step.verdict && step.files_lost == 0;
  };
  const auto before = std::find_if(now + 1, steps.end(), is_whole);
  if (before != steps.end()) return before->path;
  const auto after = std::find_if(std::reverse_iterator(now), steps.rend(), is_whole);
  return after == steps.rend() ? std::string() : after->path;
}

// Reading every byte again is the user's choice.
void draw_plan_over_there(Frame& frame, Column& column) {
  const Snapshot& snapshot = frame.snapshot;
  if (!snapshot.runs_over_ssh || !is_diagnosed_remotely(snapshot) ||
      snapshot.options.fill.starts_with("from:"))
    return;
  if (Line(frame, column, 30, Gap::kMedium)
          .button("plan/over-there", "Plan it over there",
                  "Makes the whole plan on the machine of the checkpoint, which reads every byte "
                  "again."))
    frame.emit(PlanCommand{snapshot.options.fill, false, {}, true});
}

// The fill that is typed in the panel; empty: none.
std::string typed_fill(const UiState& state) {
  const std::string path = without_blanks(state.fill_path);
  return path.empty() ? path : "from:" + path;
}

// The user selects the fill for lost elements; a click makes a new plan.
void draw_fill(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "LOST ELEMENTS ARE FILLED WITH");
  const std::string& now = frame.snapshot.options.fill;
  const bool is_repair = loses_elements(*frame.snapshot.plan);
  bool other = state.fill_open || now.starts_with("from:");
  if (const std::string source = suggested_fill_source(frame.snapshot); !source.empty()) {
    const bool is_chosen = now == "from:" + source;
    other = other && !is_chosen;
    const std::string label = "The elements of " + printable(short_path(source));
    if (Line(frame, column)
            .button("plan/fill-offered", label,
                    "Plans again: lost elements are taken from " + printable(source),
                    is_chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet)) {
      state.fill_open = false;
      state.fill_path.clear();
      frame.emit(PlanCommand{"from:" + source});
    }
  }
  struct {
    const char *id, *label, *tip;
    bool chosen;
  } choices[] = {{"plan/fill-cast", "Master weights from the weights, zeros elsewhere",
                  "Plans again: a lost master weight is cast from its weight, all else is zero.",
                  !other && ((now.empty() && is_repair) || now == "cast")},
                 {"plan/fill-zero", "Zeros", "Plans again: every lost element becomes zero.",
                  !other && now == "zero"},
                 {"plan/fill-from", "Another checkpoint",
                  "Takes lost elements from another checkpoint, whose path you type.", other}};
  Line line(frame, column);
  for (const auto& choice : choices) {
    if (!line.button(choice.id, choice.label, choice.tip,
                     choice.chosen ? ButtonStyle::kPlain : ButtonStyle::kQuiet))
      continue;
    state.fill_open = &choice == &choices[2];
    if (state.fill_open) continue;
    state.fill_path.clear();
    frame.emit(PlanCommand{&choice == &choices[1] ? "zero" : "cast"});
  }
  state.plan.fill_shown = other;
  if (!other) return;
  const std::string hint =
      now.starts_with("from:") ? now.substr(5) : "path of a checkpoint, then Enter";
  if (field(frame, column, "plan/fill-path", hint.c_str(), state.fill_path,
            "The checkpoint whose values fill the lost elements.  (Enter)", Gap::kMedium) &&
      !typed_fill(state).empty()) {
    state.plan.sent_fill = typed_fill(state);
    if (frame.snapshot.edits != nullptr)
      state.plan.sent_of = frame.snapshot.edits->all[frame.snapshot.edits->now];
    frame.emit(PlanCommand{typed_fill(state)});
  }
}

void draw_plan_buttons(Frame& frame, UiState& state, Column column) {
  Line line(frame, column);
  struct {
    const char *id, *label;
    Action action;
    ButtonStyle style;
  } buttons[] = {{"plan/apply", is_rewrite_only_plan(frame.snapshot) ? "Write" : "Apply",
                  Action::kApply, ButtonStyle::kPrimary},
                 {"plan/in-place", "Apply in place", Action::kApplyInPlace, ButtonStyle::kPlain},
                 {"plan/close", "Cancel", Action::kPalette, ButtonStyle::kPlain}};
  for (auto& b : buttons) {
    if (b.action != Action::kPalette && !is_possible(b.action, frame, state)) continue;
    const Tip tip = b.action != Action::kPalette
                        ? Tip(b.action)
                        : Tip("Closes the plan. Nothing is written.  (Esc)");
    if (!line.button_at_end(b.id, b.label, tip, b.style)) continue;
    if (b.action != Action::kPalette)
      request_action(b.action, frame, state);
    else
      state.plan_open = false;
  }
  const Snapshot& s = frame.snapshot;
  if (s.plan == nullptr || s.plan->empty() || is_plan_executed(s)) return;
  line.elided_text_to_end(frame.fonts.small, frame.theme.quiet, why_not_applied(frame, state));
}

void draw_content(Frame& frame, UiState& state, Column& column, const Plan& plan) {
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet, summary_of(frame), Gap::kMedium);
  if (frame.snapshot.error) draw_plan_error(frame, column, *frame.snapshot.error);
  draw_plan_history(frame, state, column);
  draw_plan_steps(frame, state, column);
  draw_plan_form(frame, column);
  draw_unrepaired_findings(frame, column);
  draw_plan_over_there(frame, column);
  state.plan.fill_shown = false;
  if (loses_elements(plan) || has_unreadable_tensors(frame)) draw_fill(frame, state, column);
  if (!plan.empty()) draw_plan_target(frame, state, column);
  draw_plan_text(frame, state, column);
}

}  // namespace

std::string typed_output(const UiState& state) {
  return without_blanks(state.out);
}

const verbs::RepairTarget* examined_target(const Frame& frame, const UiState& state) {
  const Snapshot& s = frame.snapshot;
  if (s.target == nullptr || s.plan == nullptr || s.target->typed_path != typed_output(state))
    return nullptr;
  // A refused folder is the same for every plan.
  return s.target->refused || s.target->plan_of_needs == s.plan ? s.target.get() : nullptr;
}

bool fits_on_disk(const verbs::RepairTarget& target) {
  return !target.needs || !target.free || *target.needs <= *target.free;
}

std::string written_text(const verbs::RepairTarget& target) {
  if (!target.needs) return {};
  return (target.is_needs_upper_bound ? "at most " : "") + human_bytes(*target.needs);
}

bool has_unused_plan_input(const Frame& frame, const UiState& state) {
  const Snapshot& s = frame.snapshot;
  if (s.edits == nullptr) return false;
  const PlanEdit& edit = s.edits->edit();
  const std::string fill = state.plan.fill_shown ? typed_fill(state) : std::string();
  const bool is_used = fill == s.options.fill ||
                       (fill == state.plan.sent_fill && state.plan.sent_of.lock().get() != &edit);
  if (!fill.empty() && !is_used) return true;
  return state.plan.text_open && state.plan.text_of.lock().get() == &edit &&
         state.plan.text != edit.json;
}

std::string why_not_applied(const Frame& frame, const UiState& state) {
  if (frame.job.running) return "A job is running.";
  if (has_unused_plan_input(frame, state))
    return "The plan does not contain what was typed above yet.";
  const verbs::RepairTarget* target = examined_target(frame, state);
  if (target == nullptr) return "The folder is being examined.";
  return target->refused ? "The folder cannot be used." : "";
}

void forget_plan_inputs(const Frame& frame, UiState& state) {
  const auto& open = frame.snapshot.checkpoint;
  const bool is_other = state.plan.checkpoint.lock() != open;
  if (!state.plan_open || is_other) state.out.clear();
  if (is_other) state.fill_path.clear(), state.fill_open = false;
  state.plan.checkpoint = open;
}

void draw_plan_panel(Frame& frame, UiState& state) {
  const Plan* plan = frame.snapshot.plan.get();
  OverlayPanel panel;
  const char* title =
      is_rewrite_only_plan(frame.snapshot) ? "Review what is written" : "Review the repair";
  if (!begin_panel(frame, state, "##plan", 820, state.plan_height, title, panel))
    state.plan_open = false;
  if (plan != nullptr)
    draw_content(frame, state, panel.content, *plan);
  else if (frame.snapshot.error && !frame.job.running)
    draw_plan_error(frame, panel.content, *frame.snapshot.error);
  else
    paragraph(
        frame, panel.content, frame.fonts.text, frame.theme.quiet,
        frame.job.running ? "Making the plan…" : "There is no plan: nothing is to be written.");
  state.plan_height = std::max(frame.px(300), end_panel_content(frame, panel));
  draw_plan_buttons(frame, state, panel.all);
  end_overlay();
}

}  // namespace shw
