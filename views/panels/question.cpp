// Asks for confirmation before an irreversible action or one that stops a running job.
#include <imgui.h>

#include "views/actions.h"
#include "views/line.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

void draw_question(Frame& frame, UiState& state) {
  const ActionRow& row = row_of(*state.asked);
  const std::string question = row.question(frame);
  // Closes the question if its subject has ended meanwhile.
  if (question.empty() || !row.is_possible(frame, state)) return state.asked.reset();
  Column column;
  if (!begin_overlay(frame, "##question", {frame.px(520), frame.px(190)}, column))
    state.asked.reset();
  head(frame, column, row.name);
  gap(frame, column, Gap::kSmall);
  body(frame, column, question);
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
