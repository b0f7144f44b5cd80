// Notices above the status bar, for what the bar itself does not show: while a job runs, or while
// it shows something else.
#include <imgui.h>
#include <algorithm>
#include <string>

#include "views/parts.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

bool page_shows_error(const Snapshot& snapshot) {
  return snapshot.checkpoint == nullptr && snapshot.error && !run_is_shown(snapshot);
}

// The failed request that is to be shown here; null: none.
const FailedCommand* failure_to_show(const Frame& frame, const UiState& state) {
  const Snapshot& snapshot = frame.snapshot;
  if (snapshot.failure == nullptr || is_dismissed(snapshot, state)) return nullptr;
  return page_shows_error(snapshot) || bar_shows_error(frame, state) ? nullptr
                                                                     : snapshot.failure.get();
}

bool has_toast(const Frame& frame, const UiState& state) {
  if (frame.now >= state.toast_until || state.toast.empty()) return false;
  return frame.anything_runs() || bar_shows_error(frame, state);
}

}  // namespace

std::string failure_text(const Error& error) {
  std::string text = (error.place.file.empty() ? "" : error.place.file + ": ") + error.message;
  if (!error.advice.empty()) text += ". " + sentence(error.advice);
  return desktop_text(with_desktop_terms(std::move(text)));
}

bool is_dismissed(const Snapshot& snapshot, const UiState& state) {
  return snapshot.failure != nullptr && state.failure_dismissed.lock() == snapshot.failure;
}

bool bar_shows_error(const Frame& frame, const UiState& state) {
  const Snapshot& snapshot = frame.snapshot;
  if (frame.anything_runs() || !snapshot.error || snapshot.report == nullptr) return false;
  return snapshot.error->kind == ErrorKind::kCancelled || !is_dismissed(snapshot, state);
}

bool dismiss_button(Frame& frame, UiState& state, const char* id, ImVec2 middle) {
  const float half = frame.px(11), arm = frame.px(4);
  ImGui::SetCursorScreenPos({middle.x - half, middle.y - half});
  const bool clicked = control(frame, id, {2 * half, 2 * half}, "Hides this notice.");
  const Rgba ink = ImGui::IsItemHovered() ? frame.theme.text : frame.theme.quiet;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  for (float way : {-1.0f, 1.0f})
    draw->AddLine({middle.x - arm, middle.y - way * arm}, {middle.x + arm, middle.y + way * arm},
                  ink, frame.px(1.5f));
  focus_ring(frame, draw);
  if (clicked) state.failure_dismissed = frame.snapshot.failure;
  return clicked;
}

void draw_notices(Frame& frame, UiState& state, float bottom) {
  const FailedCommand* failure = failure_to_show(frame, state);
  const bool toast = has_toast(frame, state);
  if (failure == nullptr && !toast) return;
  const float wide = std::min(frame.px(620), ImGui::GetIO().DisplaySize.x - frame.px(32));
  const float high = std::max(state.notice_height, frame.px(36));
  const ImVec2 at{frame.px(16), bottom - frame.px(10) - high};
  text_layer(frame, 4);
  ImGui::SetNextWindowPos(at);
  ImGui::SetNextWindowSize({wide, high});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, failure ? frame.theme.bad_back : frame.theme.raised);
  ImGui::Begin("##notices", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRect(at, {at.x + wide, at.y + high}, frame.theme.strong_line);
  Column column{draw, at.x + frame.px(14), at.x + wide - frame.px(40), at.y + frame.px(10)};
  if (failure != nullptr) {
    dismiss_button(frame, state, "notice/dismiss",
                   {at.x + wide - frame.px(20), at.y + frame.px(18)});
    signed_paragraph(frame, column, Sign::kBad, frame.theme.text, failure_text(failure->error),
                     Gap::kTight);
  }
  if (toast)
    paragraph(frame, column, frame.fonts.small, frame.theme.text, state.toast, Gap::kTight);
  state.notice_height = column.y - at.y + frame.px(4);
  ImGui::End();
  text_layer(frame, 0);
}

}  // namespace shw
