// The structure of a record next to its bytes: what each part is, and where it begins.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "views/controls.h"
#include "views/panels/bytes_parts.h"
#include "views/text.h"

namespace shw {

Rgba part_colour(const Theme& theme, PartKind kind) {
  switch (kind) {
    case PartKind::kHeader:
      return theme.unknown;
    case PartKind::kPayload:
      return theme.ok;
    case PartKind::kTrailer:
      return theme.warn;
    case PartKind::kIndex:
      return theme.head;
    case PartKind::kPadding:
      break;
  }
  return theme.strong_line;
}

namespace {

// "local header of archive/data/0" and "archive/data/0" belong to one entry of an archive.
std::string_view entry_of(std::string_view part) {
  const std::size_t of = part.find(" of ");
  return of == part.npos ? part : part.substr(of + 4);
}

struct StructureRow {
  const BytePart* part = nullptr;
  std::string text;
  bool is_inside = false;  // of the entry above
};

// Parts in order; those of one entry are below its name.
std::vector<StructureRow> rows_of(const verbs::BytesWindow& window) {
  std::vector<StructureRow> rows;
  std::string_view entry;
  for (std::size_t i = 0; i < window.all.size(); ++i) {
    const BytePart& part = window.all[i];
    const std::string_view now = entry_of(part.name);
    const bool has_more = i + 1 < window.all.size() && entry_of(window.all[i + 1].name) == now;
    if (now != entry && has_more) rows.push_back({nullptr, std::string(now), false});
    const bool is_inside = now == entry || has_more;
    std::string text = part.name;
    if (is_inside)
      text = part.name == now ? "bytes" : part.name.substr(0, part.name.size() - now.size() - 4);
    rows.push_back({&part, std::move(text), is_inside});
    entry = now;
  }
  return rows;
}

}  // namespace

void draw_structure(Frame& frame, Column column, const verbs::BytesWindow& window,
                    std::uint64_t chosen, float bottom) {
  const float line = frame.px(19);
  const ImFont* font = frame.fonts.mono_small;
  const Measure measure = measure_with(font);
  const std::vector<StructureRow> rows = rows_of(window);
  const auto shown = static_cast<std::size_t>(std::max(1.0f, (bottom - column.y) / line));
  // Keeps the part of the chosen byte in sight.
  const auto at = std::ranges::find_if(rows, [&](const StructureRow& row) {
    return row.part != nullptr && row.part->first <= chosen && chosen < row.part->last;
  });
  const auto now = static_cast<std::size_t>(at - rows.begin());
  std::size_t first = at == rows.end() || now < shown / 2 ? 0 : now - shown / 2;
  if (first + shown > rows.size()) first = rows.size() > shown ? rows.size() - shown : 0;
  for (std::size_t i = first; i < std::min(rows.size(), first + shown); ++i, column.y += line) {
    const StructureRow& row = rows[i];
    const float left = column.left + (row.is_inside ? frame.px(14) : 0);
    if (row.part == nullptr) {
      text_from(column.draw, font, left, column.y + line / 2, frame.theme.text,
                elide_middle(row.text, column.right - left, measure));
      continue;
    }
    ImGui::SetCursorScreenPos({column.left, column.y});
    const std::string id = fmt::format("bytes/part/{}", i);
    const BytePart& part = *row.part;
    const bool clicked =
        row_control(frame, id.c_str(), id, {column.width(), line}, i == now, Tip([&] {
                      return fmt::format("{}\nbytes {} to {}. A click goes there.", part.name,
                                         human_count(part.first),
                                         human_count(std::max(part.first, part.last - 1)));
                    }));
    if (i == now)
      column.draw->AddRectFilled({column.left - frame.px(4), column.y},
                                 {column.right, column.y + line}, frame.theme.raised_hover,
                                 frame.px(3));
    focus_ring(frame, column.draw);
    const std::string offset = fmt::format("0x{:X}", part.first);
    const float end = column.right - text_width(font, offset) - frame.px(10);
    draw_text_ending_at(column.draw, font, column.right, column.y + line / 2, frame.theme.quiet,
                        offset);
    text_from(column.draw, font, left, column.y + line / 2, part_colour(frame.theme, part.kind),
              elide_middle(row.text, end - left, measure));
    if (clicked) frame.emit(BytesCommand{BytesCommand::Go::kAt, window.path, part.first});
  }
}

}  // namespace shw
