// The certificate after a repair: the result for every tensor, most severe first.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>

#include "views/line.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::CertificateList;
using verbs::TensorOutcome;
using verbs::TensorOutcomeRow;

Sign sign_of_outcome(TensorOutcome fate) {
  switch (fate) {
    case TensorOutcome::kLost:
    case TensorOutcome::kDamaged:
      return Sign::kBad;
    case TensorOutcome::kCast:
      return Sign::kWarn;
    case TensorOutcome::kMoved:
    case TensorOutcome::kRelabelled:
    case TensorOutcome::kRenamed:
      return Sign::kOk;
    case TensorOutcome::kKept:
      break;
  }
  return Sign::kQuiet;
}

std::string counts_text(const CertificateList& list) {
  std::string text;
  for (std::size_t i = 0; i < verbs::kTensorOutcomes; ++i) {
    if (list.count[i] == 0) continue;
    text += (text.empty() ? "" : ", ") + human_count(list.count[i]) + " " +
            std::string(name(static_cast<TensorOutcome>(i)));
  }
  return plural(list.rows.size(), "tensor") + ": " + (text.empty() ? "none" : text) + ".";
}

void draw_tensor_outcome(Frame& frame, const Column& column, float y, float height,
                         const TensorOutcomeRow& row) {
  const ImFont* mono = frame.fonts.mono_small;
  float middle = y + height / 2;
  draw_sign(frame, column.draw, {column.left + frame.px(8), middle}, frame.px(6),
            sign_of_outcome(row.fate));
  text_from(column.draw, frame.fonts.small, column.left + frame.px(24), middle, frame.theme.text,
            name(row.fate));
  std::string numbers = row.lost == 0
                            ? human_count(static_cast<std::uint64_t>(row.kept)) + " kept"
                            : human_count(static_cast<std::uint64_t>(row.lost)) + " lost, " +
                                  human_count(static_cast<std::uint64_t>(row.kept)) + " kept";
  if (!row.note.empty()) numbers += ", " + row.note;
  float left = column.left + frame.px(96);
  const Measure measure = measure_with(mono);
  numbers = elide_middle(numbers, column.width() * 0.45f, measure);
  float used = draw_text_ending_at(column.draw, mono, column.right, middle,
                                   row.lost != 0 ? frame.theme.bad : frame.theme.quiet, numbers);
  text_from(column.draw, mono, left, middle, frame.theme.text,
            elide_path(row.fqn, column.right - used - frame.px(16) - left, measure));
}

// Draws only the visible rows of up to 250,000 tensors.
void draw_tensor_outcomes(Frame& frame, Column& column, const std::vector<TensorOutcomeRow>& rows) {
  float height = frame.px(24), top = ImGui::GetWindowPos().y;
  float bottom = top + ImGui::GetWindowHeight();
  auto above = static_cast<std::size_t>(std::max(0.0f, (top - column.y) / height));
  for (std::size_t i = std::min(above, rows.size()); i < rows.size(); ++i) {
    float y = column.y + height * static_cast<float>(i);
    if (y > bottom) break;
    draw_tensor_outcome(frame, column, y, height, rows[i]);
  }
  column.take(height * static_cast<float>(rows.size()));
}

// Path, summary and device of the repair.
void draw_summary_of(Frame& frame, Column& column, const CertificateList& list) {
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.quiet, list.path, Gap::kSmall);
  std::string said = counts_text(list);
  said += !list.lossless         ? " The lost elements stay listed in the certificate."
          : list.dropped.empty() ? " Nothing is lost."
                                 : " No element is lost.";
  // What a changed certificate claims is not repeated.
  if (!list.sealed)
    said =
        "The seal does not match: this certificate was changed after the repair, and proves "
        "nothing. Verify the result again.";
  paragraph(frame, column, frame.fonts.text, list.sealed ? frame.theme.text : frame.theme.bad,
            said);
  if (frame.snapshot.repaired != nullptr) {
    const DeviceUse& use = frame.snapshot.repaired->device;
    gap(frame, column, Gap::kTight);
    caption(frame, column,
            "Device: " + use.device + ": " + use.why + "." +
                (use.failed.empty() ? "" : " The GPU failed under way: " + use.failed + "."));
  }
  gap(frame, column, Gap::kMedium);
}

}  // namespace

void draw_certificate(Frame& frame, UiState& state) {
  if (frame.snapshot.certificate == nullptr) {
    state.certificate_open = false;
    return;
  }
  const CertificateList& list = *frame.snapshot.certificate;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##certificate", 860, state.certificate_height, "The certificate",
                   panel))
    state.certificate_open = false;
  Column& column = panel.content;
  draw_summary_of(frame, column, list);
  for (const std::string& entry : list.entries)
    paragraph(frame, column, frame.fonts.small, frame.theme.warn, entry);
  for (const std::string& dropped : list.dropped)
    paragraph(frame, column, frame.fonts.small, frame.theme.bad, "not there any more: " + dropped);
  draw_tensor_outcomes(frame, column, list.rows);
  state.certificate_height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (close_button(line, "certificate/close")) state.certificate_open = false;
  end_overlay();
}

}  // namespace shw
