// Asks for confirmation before an irreversible action or one that stops a running job.
#include <imgui.h>

#include "views/actions.h"
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
  column.y += frame.px(6);
  paragraph(frame, column, frame.fonts.text, frame.theme.text, question);
  const float top = column.bottom - frame.px(22) - button_size(frame, row.name).y;
  float right = column.right - button_size(frame, row.name).x;
  const bool yes = button(frame, "question/yes", row.name, "Does what the title says.",
                          {right, top}, ButtonStyle::kPlain);
  right -= frame.px(10) + button_size(frame, "Cancel").x;
  const bool no = button(frame, "question/no", "Cancel", "Does nothing.  (Esc)", {right, top},
                         ButtonStyle::kPrimary);
  end_overlay();
  if (yes) row.run(frame, state);
  if (yes || no) state.asked.reset();
}

}  // namespace shw
