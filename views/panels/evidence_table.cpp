#include "views/panels/evidence_table.h"

#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "core/base/words.h"
#include "views/controls.h"
#include "views/line.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kFoldedRows = 6, kMostRows = 400;

// Finds tensors and files that the texts of a finding name.
class Names {
 public:
  explicit Names(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const FileRow& file : checkpoint.files()) files_.insert(file.path);
  }
  EvidencePlace place_of(std::string_view name) const {
    if (checkpoint_.find(name)) return {std::string(name), {}, 0};
    if (files_.contains(name)) return {{}, std::string(name), 0};
    return {};
  }
  // "NAME: detail" or "FILE detail"; without a known name the text up to the first ": ".
  EvidenceRow row_of(std::string_view text) const {
    if (auto place = place_of(text); !place.is_none()) return {std::string(text), {}, place, {}};
    for (std::string_view between : {": ", " "}) {
      for (std::size_t at = text.find(between); at != text.npos; at = text.find(between, at + 1)) {
        auto place = place_of(text.substr(0, at));
        if (place.is_none()) continue;
        const std::string_view detail = text.substr(at + between.size());
        return {std::string(text.substr(0, at)), std::string(detail), std::move(place),
                place_in(detail)};
      }
    }
    const std::size_t colon = text.find(": ");
    if (colon == text.npos) return {std::string(text), {}, {}, {}};
    const std::string_view detail = text.substr(colon + 2);
    return {std::string(text.substr(0, colon)), std::string(detail), {}, place_in(detail)};
  }

 private:
  // The place of "FILE [12808, 14385)".
  EvidencePlace place_in(std::string_view detail) const {
    const std::size_t at = detail.rfind(" [");
    if (at == detail.npos || !files_.contains(detail.substr(0, at))) return {};
    EvidencePlace place{{}, std::string(detail.substr(0, at)), 0};
    const std::string_view digits = detail.substr(at + 2);
    std::from_chars(digits.data(), digits.data() + digits.size(), place.offset);
    return place;
  }

  const Checkpoint& checkpoint_;
  std::unordered_set<std::string_view> files_;
};

bool have_same_names(const std::vector<EvidenceRow>& a, const std::vector<EvidenceRow>& b) {
  return std::ranges::equal(a, b, {}, &EvidenceRow::name, &EvidenceRow::name);
}

bool has_details(const EvidenceRow& row) {
  return !row.detail.empty();
}

// Appends the details of `rows` to those of the table.
void merge(EvidenceTable& table, std::string_view label, std::vector<EvidenceRow> rows) {
  // The list of bare names has the label that fits all: "tensors".
  if (!table.has_plain_label && std::ranges::none_of(rows, has_details)) {
    table.label = label;
    table.has_plain_label = true;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EvidenceRow& row = table.rows[i];
    if (!row.detail.empty() && !rows[i].detail.empty()) row.detail += ", ";
    row.detail += rows[i].detail;
    if (row.detail_place.is_none()) row.detail_place = std::move(rows[i].detail_place);
  }
  table.lists.emplace_back(label);
}

// Adds the evidence list "boxes", whose entries belong to the names in "boxes_in".
void add_boxes(const Finding& finding, EvidenceTable& table) {
  for (const auto& [label, value] : finding.evidence) {
    const auto* boxes = std::get_if<std::vector<Box>>(&value);
    if (boxes == nullptr || boxes->size() != table.rows.size() ||
        std::ranges::find(table.lists, label + "_in") == table.lists.end())
      continue;
    for (std::size_t i = 0; i < boxes->size(); ++i) {
      EvidenceRow& row = table.rows[i];
      row.detail += (row.detail.empty() ? "" : ", ") + to_text((*boxes)[i]);
    }
    table.lists.emplace_back(label);
  }
}

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
  const float split = beside && has_details(row) ? column.right - detail : column.right;
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

std::vector<EvidenceTable> evidence_tables(const Checkpoint& checkpoint, const Finding& finding) {
  std::vector<EvidenceTable> tables;
  const Names names(checkpoint);
  for (const auto& [label, value] : finding.evidence) {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr || list->empty()) continue;
    std::vector<EvidenceRow> rows;
    for (const std::string& text : *list) rows.push_back(names.row_of(text));
    const auto leads = [](const EvidenceRow& row) {
      return !row.place.is_none() || !row.detail_place.is_none();
    };
    // Short lists without a place, such as ranks, are in one line.
    if (std::ranges::none_of(rows, leads)) continue;
    auto same = std::ranges::find_if(
        tables, [&](const EvidenceTable& table) { return have_same_names(table.rows, rows); });
    if (same != tables.end())
      merge(*same, label, std::move(rows));
    else
      tables.push_back({label, {label}, std::move(rows), false});
  }
  for (EvidenceTable& table : tables) add_boxes(finding, table);
  return tables;
}

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
        std::min(table.rows.size(), state.unfolded.contains(t) ? kMostRows : kFoldedRows);
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
