// Where the report went that one shortcut wrote.
#include "views/actions.h"
#include "views/habits.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

// Opens once a report is there that was not there when it was asked for.
void follow_report(Frame& frame, DeskState& state) {
  HabitsState& habits = state.habits;
  if (!habits.report_asked || frame.snapshot.written == habits.report_before.lock()) return;
  habits.report_asked = false;
  habits.report_open = frame.snapshot.written != nullptr;
}

void ask_for_report(Frame& frame, DeskState& state) {
  state.habits.report_asked = true;
  state.habits.report_before = frame.snapshot.written;
  frame.emit(ReportCommand{state.habits.report_path});
}

void draw_report(Frame& frame, DeskState& state) {
  HabitsState& habits = state.habits;
  if (frame.snapshot.written == nullptr) return;
  const verbs::WrittenReport& written = *frame.snapshot.written;
  Column column;
  if (!begin_overlay(frame, "##report", {frame.px(620), habits.report_height}, column))
    habits.report_open = false;
  draw_sign(frame, column.draw, {column.left + frame.px(9), column.y + frame.px(11)}, frame.px(9),
            Sign::kOk);
  Column title = column;
  title.left += frame.px(28);
  paragraph(frame, title, frame.fonts.title, frame.theme.text, "The report is written");
  column.y = title.y + frame.px(8);
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet,
            "One page without outside references: what was found, what was not judged, what a "
            "repair would do, and the tensor that is looked at.");
  column.y += frame.px(12);
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.text, printable(written.path));
  paragraph(frame, column, frame.fonts.small, frame.theme.quiet, human_bytes(written.bytes));
  column.y += frame.px(16);
  head(frame, column, "THE NEXT ONE", "a folder, or a file that is not there yet");
  float height = frame.px(34), wide = button_size(frame, "Write there").x;
  bool enter = text_field(frame, column.draw, "report/path", "beside the checkpoint",
                          {column.left, column.y}, {column.width() - wide - frame.px(10), height},
                          habits.report_path);
  if (button(frame, "report/again", "Write there", {column.right - wide, column.y + frame.px(2)}) ||
      enter)
    ask_for_report(frame, state);
  column.y += height + frame.px(18);
  if (button(frame, "report/copy", "Copy the path", {column.left, column.y})) {
    ImGui::SetClipboardText(written.path.c_str());
    tell(frame, state, "Copied " + written.path);
    habits.report_open = false;
  }
  float close = button_size(frame, "Close").x;
  if (button(frame, "report/close", "Close", {column.right - close, column.y}))
    habits.report_open = false;
  habits.report_height += column.y + frame.px(30 + 22) - column.bottom;
  end_overlay();
}

}  // namespace shw
