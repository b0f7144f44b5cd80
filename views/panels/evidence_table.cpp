#include "views/panels/evidence_table.h"

#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>

#include "core/base/words.h"
#include "views/controls.h"
#include "views/line.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kFoldedRows = 6, kMaxRows = 400;

std::string tip_of(const EvidencePlace& place, const std::string& text) {
  if (!place.tensor.empty()) return text + "\nGoes to the tensor.";
  if (place.file.empty()) return text;
  return text +
         fmt::format("\nShows the bytes of {} at {}.", place.file, human_count(place.offset));
}

// Text that can be clicked if it leads to a place.
void draw_cell(Frame& frame, const Column& column, float left, float right, const std::string& id,
               const std::string& text, const EvidencePlace& place, Rgba colour) {
  const float height = frame.px(20);
  ImGui::SetCursorScreenPos({left, column.y});
  const std::string shown = desktop_text(text);
  const bool clicked = row_control(frame, id.c_str(), id, {std::max(1.0f, right - left), height},
                                   false, Tip([&] { return tip_of(place, shown); }));
  const bool lit = ImGui::IsItemHovered() && !place.is_none();
  const float width =
      text_from(column.draw, frame.fonts.mono_small, left, column.y + height / 2, colour,
                elide_path(shown, right - left, measure_with(frame.fonts.mono_small)));
  if (lit)
    column.draw->AddLine({left, column.y + height - 1}, {left + width, column.y + height - 1},
                         frame.theme.quiet);
  focus_ring(frame, column.draw);
  if (!clicked) return;
  if (!place.tensor.empty())
    frame.emit(SelectTensorCommand{place.tensor});
  else if (!place.file.empty())
    frame.emit(BytesCommand{BytesCommand::Go::kAt, place.file, place.offset});
}

// The detail is next to the name where both fit, otherwise below it.
void draw_evidence_row(Frame& frame, Column& column, const EvidenceRow& row,
                       const std::string& id) {
  const float line = frame.px(20);
  const float detail = text_width(frame.fonts.mono_small, desktop_text(row.detail));
  const float name = text_width(frame.fonts.mono_small, row.name);
  const bool beside = name + detail + frame.px(12) <= column.width();
  if (!ImGui::IsRectVisible({column.left, column.y}, {column.right, column.y + 2 * line})) {
    column.take(row.detail.empty() || beside ? line : 2 * line);
    return;
  }
  const float split = beside && !row.detail.empty() ? column.right - detail : column.right;
  draw_cell(frame, column, column.left, beside ? split - frame.px(8) : column.right, id, row.name,
            row.place, frame.theme.text);
  if (!row.detail.empty()) {
    if (!beside) column.take(line);
    draw_cell(frame, column, beside ? split : column.left + frame.px(12), column.right,
              id + "/detail", row.detail, row.detail_place.is_none() ? row.place : row.detail_place,
              frame.theme.quiet);
  }
  column.take(line);
}

std::string label_of(const EvidenceTable& table) {
  std::string text = table.label;
  for (std::string_view end : {"_of", "_in"}) {
    if (text.ends_with(end)) text.resize(text.size() - end.size());
  }
  std::ranges::replace(text, '_', ' ');
  return text;
}

}  // namespace

void follow_finding(const Snapshot& snapshot, std::size_t finding, EvidenceState& state) {
  if (state.report.lock() == snapshot.report && state.finding == finding) return;
  state = {snapshot.report, finding, {}};
}

bool is_in_table(const std::vector<EvidenceTable>& tables, std::string_view label) {
  return std::ranges::any_of(tables, [&](const EvidenceTable& table) {
    if (std::ranges::find(table.lists, label) != table.lists.end()) return true;
    std::string count = table.label.substr(0, table.label.find('_'));
    if (count.ends_with('s')) count.pop_back();
    return label == count + "_count";
  });
}

void draw_evidence_tables(Frame& frame, Column& column, EvidenceState& state) {
  const std::vector<EvidenceTable>& tables = *frame.digest.evidence;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const EvidenceTable& table = tables[t];
    const std::size_t most =
        std::min(table.rows.size(), state.unfolded.contains(t) ? kMaxRows : kFoldedRows);
    text_line(frame, column, frame.fonts.mono_small, frame.theme.quiet,
              fmt::format("{} · {}", label_of(table), human_count(table.rows.size())), Gap::kTight);
    for (std::size_t i = 0; i < most; ++i)
      draw_evidence_row(frame, column, table.rows[i],
                        fmt::format("evidence/{}/{}", table.label, i));
    if (most < table.rows.size()) {
      const std::string more = "and " + human_count(table.rows.size() - most) + " more";
      const std::string id = fmt::format("evidence/{}/more", table.label);
      if (state.unfolded.contains(t))
        caption(frame, column, more + "; finding:* lists them");
      else if (link_line(frame, column, id.c_str(), more, "Lists more of them here."))
        state.unfolded.insert(t);
    }
    gap(frame, column, Gap::kSmall);
  }
}

}  // namespace shw
