// The steps of a run: one row per checkpoint of the opened folder. A click opens a step; Shift and
// a click compares it with the previous step.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/panels/browser.h"
#include "views/panels/run_parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr float kStepRow = 44;

bool has_numbers(const Frame& frame) {
  return frame.digest.run != nullptr && frame.snapshot.run_numbers != nullptr &&
         !frame.digest.run->rows.empty();
}

// Left ends of the columns.
struct RunColumns {
  float name, time, bytes, lost, norm, differs;
};

RunColumns run_columns(const Frame& frame, float left, float right) {
  const float wide = right - left;
  RunColumns columns{};
  columns.name = left + frame.px(34);
  columns.time = left + wide * 0.30f;
  columns.bytes = left + wide * 0.46f;
  columns.lost = left + wide * 0.56f;
  columns.norm = columns.differs = left + wide * 0.68f;
  if (has_numbers(frame)) columns.differs = left + wide * 0.80f;
  return columns;
}

// The worse of the check's result and the statistics.
Sign sign_of_step(const Frame& frame, std::size_t at) {
  const verbs::RunStep& step = frame.snapshot.run->steps[at];
  const RunCell* all = has_numbers(frame) ? &frame.digest.run->cell(0, at) : nullptr;
  if (all != nullptr && all->nan != 0) return Sign::kBad;
  if (!step.is_known) return Sign::kQuiet;
  if (step.is_error) return Sign::kBad;
  if (step.verdict == Verdict::kFindings || step.has_hint) return Sign::kWarn;
  if (all != nullptr && all->infinite != 0) return Sign::kWarn;
  return step.verdict == Verdict::kClean ? Sign::kOk : Sign::kUnknown;
}

std::string lost_text(const verbs::RunStep& step) {
  if (!step.is_known || !step.verdict) return "";
  return step.files_lost == 0 ? "none" : human_count(step.files_lost);
}

std::string differs_text(const verbs::RunStep& step, bool is_oldest) {
  if (is_oldest) return "the first step";
  if (!step.is_compared) return step.is_known && step.verdict ? "…" : "";
  return step.differs.empty() ? "the same names and shapes" : step.differs;
}

// The norm of all modules of a step, or its NaN.
void draw_step_norm(const Frame& frame, ImDrawList* draw, std::size_t step, float x, float end,
                    float middle) {
  if (!has_numbers(frame)) return;
  const RunCell& cell = frame.digest.run->cell(0, step);
  if (cell.state != RunCell::State::kCounted) return;
  // A number from an incompletely read step is marked with "?".
  const std::string number = (cell.is_whole ? "" : "? ") + cell_number(cell);
  text_from(draw, frame.fonts.mono_small, x, middle,
            cell.is_anomalous() ? frame.theme.bad : frame.theme.text,
            elide_end(number, end - x - frame.px(10), measure_with(frame.fonts.mono_small)));
}

void draw_run_step(Frame& frame, ImDrawList* draw, std::size_t at, ImVec2 min, ImVec2 max) {
  const verbs::RunSteps& run = *frame.snapshot.run;
  const verbs::RunStep& step = run.steps[at];
  const bool is_oldest = at + 1 == run.steps.size() && run.not_read == 0;
  const RunColumns columns = run_columns(frame, min.x, max.x);
  const Theme& theme = frame.theme;
  const float first = min.y + frame.px(13), second = min.y + frame.px(31);
  draw_sign(frame, draw, {min.x + frame.px(16), first}, frame.px(7), sign_of_step(frame, at));
  const Measure mono = measure_with(frame.fonts.mono_small);
  const Measure small = measure_with(frame.fonts.small);
  auto put = [&](float x, float end, std::string_view text, Rgba ink) {
    text_from(draw, frame.fonts.mono_small, x, first, ink,
              elide_end(text, end - x - frame.px(10), mono));
  };
  text_from(draw, frame.fonts.mono_strong, columns.name, first, theme.text,
            elide_middle(step.name, columns.time - columns.name - frame.px(10), mono));
  put(columns.time, columns.bytes, step.time, theme.quiet);
  if (step.files != 0) put(columns.bytes, columns.lost, human_bytes(step.bytes), theme.text);
  put(columns.lost, columns.norm, lost_text(step), step.files_lost != 0 ? theme.bad : theme.quiet);
  draw_step_norm(frame, draw, at, columns.norm, columns.differs, first);
  const std::string differs = differs_text(step, is_oldest);
  text_from(draw, frame.fonts.small, columns.differs, first,
            step.differs.empty() ? theme.quiet : theme.warn,
            elide_end(differs, max.x - columns.differs - frame.px(8), small));
  std::string said = step.is_known ? step.headline : "not checked yet";
  if (step.elements_lost > 0)
    said += ". " + plural(static_cast<std::uint64_t>(step.elements_lost), "element") +
            " cannot be read";
  text_from(draw, frame.fonts.small, columns.name, second, step.is_error ? theme.bad : theme.quiet,
            elide_end(said, max.x - columns.name - frame.px(8), small));
}

void draw_heads(Frame& frame, ImDrawList* draw, float left, float right, float y) {
  const RunColumns columns = run_columns(frame, left, right);
  std::vector<std::pair<float, const char*>> heads{
      {columns.name, "STEP"},
      {columns.time, "WRITTEN"},
      {columns.bytes, "SIZE"},
      {columns.lost, "FILES LOST"},
      {columns.differs, "DIFFERS FROM THE STEP BEFORE"}};
  if (has_numbers(frame)) heads.insert(heads.end() - 1, {columns.norm, "NORM, NaN"});
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const float end = i + 1 < heads.size() ? heads[i + 1].first : right;
    text_from(draw, frame.fonts.head, heads[i].first, y, frame.theme.quiet,
              elide_end(heads[i].second, end - heads[i].first - frame.px(6),
                        measure_with(frame.fonts.head)));
  }
}

void open_step(Frame& frame, UiState& state, const verbs::RunSteps& run, const StepChoice& choice,
               bool compares) {
  const std::size_t at = choice.step;
  OpenCommand open{run.steps[at].path};
  open.tensor = choice.tensor;
  state.browser.in_new_tab = choice.in_new_tab;
  open_place(frame, state, std::move(open));
  if (!compares || choice.in_new_tab || at + 1 >= run.steps.size()) return;
  state.compare_open = true;
  state.compare_path = run.steps[at + 1].path;
  frame.emit(CompareCommand{run.steps[at + 1].path, false});
}

// Moves the chosen row by keys; returns true if Enter opens it.
bool move_chosen_row(Frame& frame, UiState& state, std::size_t rows) {
  if (is_covered(state) || rows == 0) return false;
  for (KeyPress key : frame.keys) {
    const bool down = key.key == Key::kDown, up = key.key == Key::kUp;
    if ((!down && !up) || key.alt) continue;
    if (key.ctrl) {
      if (has_numbers(frame)) move_module(*frame.digest.run, state.run, down ? 1 : -1);
      continue;
    }
    state.run.row += down ? 1 : -1;
    state.run.reveal = true;
  }
  state.run.row = std::clamp(state.run.row, 0, static_cast<int>(rows) - 1);
  return frame.pressed({Key::kEnter}) || frame.pressed({Key::kEnter, false, true, false}) ||
         frame.pressed({Key::kEnter, true, false, false});
}

std::optional<std::size_t> draw_step_rows(Frame& frame, UiState& state, const verbs::RunSteps& run,
                                          Region region) {
  begin_region(frame, "run/list", region, frame.theme.background, true);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  ImGui::SetCursorPos({0, 0});
  const float line = frame.px(kStepRow), high = region.max.y - region.min.y;
  if (state.run.reveal) {
    const float top = line * static_cast<float>(state.run.row);
    if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
    if (top + line > ImGui::GetScrollY() + high) ImGui::SetScrollY(top + line - high);
    state.run.reveal = false;
  }
  const float width = ImGui::GetContentRegionAvail().x;
  std::optional<std::size_t> clicked;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(run.steps.size()), line);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ImVec2 min = ImGui::GetCursorScreenPos(), max{min.x + width, min.y + line};
      ImGui::PushID(i);
      const auto tip = [&] {
        return run.steps[at].path + "\n" + run.steps[at].headline +
               "\nA click opens it, with Ctrl in a new tab. Shift and a click compare it with the "
               "step before it.";
      };
      const std::string name = frame.marks != nullptr ? fmt::format("run/step/{}", i) : "";
      if (row_control(frame, "step", name, {width, line}, i == state.run.row, tip)) clicked = at;
      ImDrawList* draw = ImGui::GetWindowDrawList();
      if (i == state.run.row || ImGui::IsItemHovered())
        draw->AddRectFilled(min, max,
                            i == state.run.row ? frame.theme.selected : frame.theme.raised_hover,
                            frame.px(4));
      draw_run_step(frame, draw, at, min, max);
      focus_ring(frame, draw);
      ImGui::PopID();
    }
  }
  ImGui::PopStyleVar();
  end_region();
  return clicked;
}

std::string run_hint(const Frame& frame) {
  const verbs::RunSteps& run = *frame.snapshot.run;
  std::string hint =
      "Enter or a click opens a step, with Ctrl in a new tab; with Shift it is compared with the "
      "step before it.";
  if (has_numbers(frame)) hint += " Ctrl+Up and Ctrl+Down choose a module.";
  hint += " New steps appear by themselves.";
  if (run.not_read != 0) hint += " " + plural(run.not_read, "older entry") + " not shown.";
  return hint;
}

StepChoice choice_at_cursor(const Frame& frame, const UiState& state) {
  StepChoice choice{static_cast<std::size_t>(state.run.row), {}};
  if (state.run.module && has_numbers(frame))
    choice.tensor =
        tensor_to_open(frame.snapshot, *frame.digest.run, *state.run.module, choice.step);
  return choice;
}

// The button that computes statistics of all steps, right-aligned, with the bytes to read next to
// it. Returns the left end.
float draw_run_statistics_button(Frame& frame, UiState& state, float right, float middle) {
  if (!is_possible(Action::kRunNumbers, frame, state)) return right;
  const RunMatrix& matrix = *frame.digest.run;
  const std::string label = matrix.counted == 0
                                ? std::string("Count norms and NaN")
                                : "Count " + plural(matrix.steps() - matrix.counted, "more step");
  const ImVec2 size = button_size(frame, label);
  right -= size.x;
  const auto tip = [&] {
    return "Reads every float element of every step, " + human_bytes(matrix.bytes_left) +
           " at most, and shows the L2 norm, NaN and infinite elements of each module. It can be "
           "paused and cancelled; what is counted stays.  (" +
           to_text(key_of(Action::kRunNumbers)) + ")";
  };
  if (button(frame, "run/count", label, tip, {right, middle - size.y / 2}))
    run(Action::kRunNumbers, frame, state);
  right -= frame.px(12);
  return right - draw_text_ending_at(ImGui::GetWindowDrawList(), frame.fonts.small, right, middle,
                                     frame.theme.quiet, "reads " + human_bytes(matrix.bytes_left));
}

// The list, and below it the matrix if there are numbers. Returns the step that was clicked.
std::optional<StepChoice> draw_run_parts(Frame& frame, UiState& state, Column& column,
                                         float bottom) {
  const verbs::RunSteps& run = *frame.snapshot.run;
  float list_bottom = bottom;
  if (has_numbers(frame)) {
    const float all = frame.px(kStepRow) * static_cast<float>(run.steps.size());
    list_bottom = column.y + std::min(all, std::floor((bottom - column.y) * 0.4f));
  }
  std::optional<StepChoice> choice;
  if (auto clicked =
          draw_step_rows(frame, state, run, {{column.left, column.y}, {column.right, list_bottom}}))
    choice = {*clicked, {}};
  if (!has_numbers(frame)) return choice;
  auto cell = draw_run_matrix(frame, state,
                              {{column.left, list_bottom + frame.px(18)}, {column.right, bottom}});
  return choice ? choice : cell;
}

}  // namespace

bool run_is_shown(const Snapshot& snapshot) {
  return snapshot.checkpoint == nullptr && snapshot.run != nullptr;
}

void draw_run(Frame& frame, UiState& state, Region region) {
  const verbs::RunSteps& run = *frame.snapshot.run;
  if (!run.is_complete() && !run.error && !frame.job.looking &&
      state.run.asked_for.lock() != frame.snapshot.run) {
    state.run.asked_for = frame.snapshot.run;
    frame.emit(RunCommand{});
  }
  begin_region(frame, "run", region, frame.theme.background, false);
  Column column{ImGui::GetWindowDrawList(), region.min.x + frame.px(24),
                region.max.x - frame.px(24), region.min.y + frame.px(14)};
  const bool enter = move_chosen_row(frame, state, run.steps.size());
  const float middle = column.y + frame.px(15);
  const float end = draw_run_statistics_button(frame, state, column.right, middle) - frame.px(20);
  text_from(column.draw, frame.fonts.mono_small, column.left, middle, frame.theme.quiet,
            elide_middle(run.path, end - column.left, measure_with(frame.fonts.mono_small)));
  column.take(frame.px(42));
  draw_heads(frame, column.draw, column.left, column.right, column.y);
  gap(frame, column, Gap::kLarge);
  const float bottom = region.max.y - frame.px(34);
  auto choice = draw_run_parts(frame, state, column, bottom);
  const Measure small = measure_with(frame.fonts.small);
  text_from(column.draw, frame.fonts.small, column.left, bottom + frame.px(17), frame.theme.quiet,
            elide_end(run_hint(frame), column.width(), small));
  end_region();
  if (enter && !run.steps.empty()) choice = choice_at_cursor(frame, state);
  if (!choice || frame.job.running) return;
  state.run.row = static_cast<int>(choice->step);
  choice->in_new_tab = is_possible(Action::kOpenInTab, frame, state) &&
                       (ImGui::GetIO().KeyCtrl || frame.pressed({Key::kEnter, true, false, false}));
  open_step(frame, state, run, *choice,
            ImGui::GetIO().KeyShift || frame.pressed({Key::kEnter, false, true, false}));
}

}  // namespace shw
