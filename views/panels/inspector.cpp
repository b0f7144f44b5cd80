// The right column: cause, evidence and remedy of a finding, and the tile under the mouse.
#include <fmt/core.h>

#include <algorithm>

#include "core/rules/rules.h"
#include "views/actions.h"
#include "views/columns.h"
#include "views/line.h"
#include "views/map/tile_map.h"
#include "views/panels/content_panels.h"
#include "views/panels/finding_page.h"
#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"
#include "views/verdict.h"

namespace shw {
namespace {

std::optional<Extents> offsets_after(const Frame& frame, ChunkId chunk) {
  const Picture* picture = frame.digest.picture.get();
  if (picture == nullptr || picture->after == nullptr) return std::nullopt;
  const TileSet& after = *picture->after;
  std::uint32_t first = after.size() > 0 ? static_cast<std::uint32_t>(after.chunk(0)) : 0;
  std::uint32_t guess =
      static_cast<std::uint32_t>(chunk) - std::min(first, static_cast<std::uint32_t>(chunk));
  if (guess >= after.size() || after.chunk(guess) != chunk) return std::nullopt;
  return copy_of(after.offsets(guess));
}

void draw_tile(Frame& frame, UiState& state, Column& column) {
  auto tile = current_tile(frame, state);
  head(frame, column, state.map.hovered || state.map.pinned ? "TILE UNDER THE CURSOR" : "TILE");
  if (!tile) {
    caption(frame, column, "Point at a tile to see who wrote it and where its bytes are.",
            Gap::kMedium);
    return;
  }
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  const Theme& theme = frame.theme;
  auto writer = checkpoint.writer(*tile);
  row(frame, column, "rank", writer ? rank_text(frame, *writer) : "not in the file's name",
      writer ? theme.text : theme.quiet);
  row(frame, column, "offsets", to_text(checkpoint.offsets(*tile)), theme.text);
  auto after = offsets_after(frame, *tile);
  if (after && !same(*after, checkpoint.offsets(*tile)))
    row(frame, column, "after", to_text(ExtentsView(*after)), theme.accent);
  row(frame, column, "sizes", to_text(checkpoint.sizes(*tile)), theme.text);
  auto item = checkpoint.item(*tile);
  if (!item) {
    row(frame, column, "file", "no storage record", theme.bad);
    return;
  }
  const FileRow& file = checkpoint.file(item->file);
  bool missing = checkpoint.directory() != nullptr && file.kind != EntryKind::kFile;
  row(frame, column, "file", missing ? file.path + " (missing)" : file.path,
      missing ? theme.bad : theme.text);
  std::string offset = offset_text(item->offset);
  std::string length = item->length < 0 ? fmt::format("{} B", item->length)
                                        : human_bytes(static_cast<std::uint64_t>(item->length));
  row(frame, column, "at", fmt::format("{}, {}", offset, length), theme.text);
  CrcState crc = crc_state(frame, *tile);
  row(frame, column, "CRC-32", crc.text,
      crc.sign == Sign::kOk    ? theme.ok
      : crc.sign == Sign::kBad ? theme.bad
                               : theme.quiet);
  draw_viewer_chips(frame, state, column, false);
  gap(frame, column, Gap::kMedium);
}

// True if the finding names the tensor, or is the worst one about it.
bool is_about_tensor(const Frame& frame, std::size_t finding, TensorId tensor) {
  const FindingEffects& about = *frame.digest.about;
  const std::size_t t = index_of(tensor);
  return about.names.names(tensor, finding) ||
         (t < about.finding_of.size() && about.finding_of[t] == finding + 1);
}

// Facts about the selected tensor, independent of the shown finding.
void draw_tensor_facts(Frame& frame, Column& column) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  TensorId tensor = *frame.snapshot.tensor;
  head(frame, column, "TENSOR");
  row(frame, column, "name", shown_name(checkpoint.fqn(tensor)), frame.theme.text);
  row(frame, column, "shape", to_text(checkpoint.shape(tensor)), frame.theme.text);
  row(frame, column, "dtype", dtype_text(checkpoint, tensor), frame.theme.text);
  auto chunks = checkpoint.chunks(tensor);
  row(frame, column, "tiles", human_count(chunks.size()), frame.theme.text);
  if (auto elements = volume(checkpoint.shape(tensor))) {
    double bytes = static_cast<double>(*elements) * size_of(checkpoint.dtype(tensor));
    row(frame, column, "bytes", human_bytes(static_cast<std::uint64_t>(std::min(bytes, 1e18))),
        frame.theme.text);
  }
}

// Notes that the shown finding is about other tensors, and links the finding about the selected
// tensor.
void draw_finding_of_other_tensors(Frame& frame, Column& column) {
  const auto& findings = frame.snapshot.report->findings;
  std::string_view fqn = frame.snapshot.checkpoint->fqn(*frame.snapshot.tensor);
  draw_tensor_facts(frame, column);
  gap(frame, column, Gap::kSmall);
  const Picture* picture = frame.digest.picture.get();
  if (picture != nullptr && picture->finding && *picture->finding < findings.size()) {
    std::size_t index = *picture->finding;
    if (link_line(frame, column, "finding/own",
                  "Show the finding about this tensor: " + findings[index].rule,
                  "Shows the finding that names this tensor.", Gap::kMedium)) {
      frame.emit(SelectFindingCommand{index});
      frame.emit(SelectTensorCommand{std::string(fqn)});  // the finding selects its first tensor
    }
  } else {
    caption(frame, column, "No finding names this tensor.", Gap::kLarge);
  }
  head(frame, column, "FINDING ABOUT OTHER TENSORS");
}

// Each group of questions, and below it what would decide them.
void draw_unjudged(Frame& frame, Column& column, std::span<const Unjudged> unjudged) {
  if (unjudged.empty()) return;
  gap(frame, column, Gap::kMedium);
  head(frame, column, "NOT CHECKED");
  for (const UnjudgedGroup& group : group_by_need(unjudged)) {
    std::string whats;
    for (const std::string& what : group.whats) whats += (whats.empty() ? "" : "; ") + what;
    paragraph(frame, column, frame.fonts.small, frame.theme.text, sentence(whats) + ".");
    caption(frame, column, "Needs " + with_desktop_terms(group.needs) + ".", Gap::kSmall);
  }
}

void draw_no_finding(Frame& frame, UiState& state, Column& column) {
  const CheckReport* report = frame.snapshot.report.get();
  head(frame, column, "FINDINGS");
  if (report == nullptr) {
    paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
              frame.job.running ? "Checking…" : "Not yet checked.");
  } else {
    body(frame, column,
         report->verdict == Verdict::kUndecided ? "Not everything could be checked."
                                                : "No finding.");
    draw_unjudged(frame, column, report->unjudged);
    bool wants_expectation =
        std::any_of(report->unjudged.begin(), report->unjudged.end(), [](const Unjudged& one) {
          return one.needs.find("--spec") != one.needs.npos ||
                 one.needs.find("--against") != one.needs.npos;
        });
    gap(frame, column, Gap::kMedium);
    if (wants_expectation &&
        link_line(frame, column, "expect/open",
                  "Set the expected shapes  " + to_text(key_of(Action::kExpect)), Action::kExpect))
      run(Action::kExpect, frame, state);
  }
  gap(frame, column, Gap::kLarge);
}

}  // namespace

void draw_inspector(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "inspector", region, frame.theme.side, true);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float scroll = ImGui::GetScrollY();
  bool findings = frame.snapshot.report != nullptr && !frame.snapshot.report->findings.empty();
  Column column{draw, region.min.x + frame.px(17), region.max.x - frame.px(16),
                region.min.y + frame.px(12) - scroll};
  draw_collapse(frame, "collapse/right", state.layout.right, column.right,
                column.y + frame.px(findings ? 11 : 7), false);
  const Finding* shown = nullptr;
  std::size_t index = 0;
  if (findings) {
    const auto& all = frame.snapshot.report->findings;
    index = std::min(frame.snapshot.finding.value_or(0), all.size() - 1);
    shown = &all[index];
    if (state.subjects_of != shown) state.subjects_open = false;
    state.subjects_of = shown;
  }
  bool selected = frame.snapshot.tensor &&
                  index_of(*frame.snapshot.tensor) < frame.snapshot.checkpoint->tensor_count();
  if (selected && shown != nullptr && !is_about_tensor(frame, index, *frame.snapshot.tensor))
    draw_finding_of_other_tensors(frame, column);
  if (findings)
    draw_finding(frame, state, column);
  else
    draw_no_finding(frame, state, column);
  if (!findings && selected) {
    draw_tensor_facts(frame, column);
    gap(frame, column, Gap::kMedium);
  }
  draw_tile(frame, state, column);
  if (findings) {
    const std::string& link = frame.snapshot.report->findings[index].link;
    if (!link.empty()) caption(frame, column, "The cause is known upstream: " + link + ".");
  }
  close_column(frame, column);
  draw->AddLine({region.min.x, region.min.y}, {region.min.x, region.max.y}, frame.theme.line);
  end_region();
}

}  // namespace shw
