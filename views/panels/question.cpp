// Asks for confirmation before an irreversible action or one that stops a running job.
#include <imgui.h>

#include <algorithm>

#include "views/actions.h"
#include "views/line.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

void draw_question(Frame& frame, UiState& state) {
  const ActionRow& row = row_of(*state.asked);
  const std::string question = row.question(frame);
  // The answer is about what was asked: another subject needs another question. Jobs come and go
  // while the user is asked about closing.
  const bool is_same = question == state.asked_text || row.overlay == OverlayPolicy::kAlways;
  if (question.empty() || !is_same || !row.is_possible(frame, state)) return state.asked.reset();
  Column column;
  const float height = std::max(frame.px(190), state.question_height);
  if (!begin_overlay(frame, "##question", {frame.px(520), height}, column)) state.asked.reset();
  const float top = column.bottom - height;
  head(frame, column, row.name);
  gap(frame, column, Gap::kSmall);
  body(frame, column, question);
  state.question_height = column.y - top + frame.px(12 + 30 + 22);
  column.y = column.bottom - frame.px(22 + 30);
  Line line(frame, column);
  const bool yes = line.button_at_end("question/yes", row.name, "Does what the title says.");
  const bool no =
      line.button_at_end("question/no", "Cancel", "Does nothing.  (Esc)", ButtonStyle::kPrimary);
  ImGui::SetItemDefaultFocus();  // a key pressed too often does no harm
  end_overlay();
  if (yes) row.run(frame, state);
  if (yes || no) state.asked.reset();
}

}  // namespace shw
