// Helpers for rows of the action table, and the parts from which the table is
// assembled.
#pragma once

#include <span>

#include "views/action.h"

namespace shw {

std::span<const ActionRow> finding_actions();
std::span<const ActionRow> view_actions();
std::span<const ActionRow> repair_actions();
std::span<const ActionRow> viewer_actions();
std::span<const ActionRow> names_actions();
std::span<const ActionRow> browser_actions();
std::span<const ActionRow> secondary_panel_actions();
std::span<const ActionRow> tab_actions();
// For a verb that reads every byte: empty if they are read on this machine, or on the checkpoint's.
std::string question_before_transfer(const Frame& frame);
// Like question_before_transfer(), for a verb that reads the reference too.
std::string question_before_check(const Frame& frame);
// Names each job that closing stops, with what it leaves; empty: none is worth a question.
std::string question_before_stopping(const Frame& frame);

constexpr KeyPress ctrl(Key key) {
  return {key, true, false, false};
}
constexpr KeyPress shift(Key key) {
  return {key, false, true, false};
}
constexpr KeyPress ctrl_shift(Key key) {
  return {key, true, true, false};
}
constexpr KeyPress alt(Key key) {
  return {key, false, false, true};
}

inline bool always(const Frame& /*frame*/, const UiState& /*state*/) {
  return true;
}
inline bool has_checkpoint(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr;
}
inline bool has_tensor(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.tensor.has_value();
}
inline bool has_findings(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.report != nullptr && !frame.snapshot.report->findings.empty();
}

template <typename Wanted>
void emit_one(Frame& frame, UiState& /*state*/) {
  frame.emit(Wanted{});
}

}  // namespace shw
