// Differences between the open checkpoint and another one, tensor by tensor.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>

#include "views/actions.h"
#include "views/line.h"
#include "views/panels/browser.h"
#include "views/panels/content_panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

Sign sign_of_kind(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kUndecided:
      return Sign::kUnknown;
    case DifferenceKind::kRenamed:
    case DifferenceKind::kRetiled:
      return Sign::kQuiet;
    case DifferenceKind::kAdded:
    case DifferenceKind::kDtype:
      return Sign::kWarn;
    default:
      return Sign::kBad;
  }
}

std::string verdict_text(const CheckpointDifference& difference, bool is_mapped) {
  // Sorted by kind, most severe first, so that a frame does not count 250,000 rows.
  auto of_kind = [&](DifferenceKind kind) {
    const auto& all = difference.tensors;
    auto begin = std::partition_point(all.begin(), all.end(),
                                      [&](const TensorDifference& one) { return one.kind < kind; });
    auto end = std::partition_point(begin, all.end(),
                                    [&](const TensorDifference& one) { return one.kind == kind; });
    return static_cast<std::size_t>(end - begin);
  };
  // Different tiles alone are not a difference, and an undecided tensor may not be one.
  std::size_t open = of_kind(DifferenceKind::kUndecided);
  std::size_t different = difference.tensors.size() - open - of_kind(DifferenceKind::kRetiled);
  if (difference.verdict == EqualityVerdict::kSame)
    return difference.data ? "The same to the bit." : "The same: both are in the same files.";
  std::string text =
      difference.verdict == EqualityVerdict::kDifferent
          ? "Different: " +
                (different != 0 ? plural(different, "tensor") : "entries that are not tensors") +
                "."
      : different == 0 && !difference.data ? "No difference was found so far."
                                           : "Cannot tell whether they are the same.";
  if (open != 0) text += " Undecided: " + plural(open, "tensor") + ".";
  if (!difference.data)
    text += is_mapped ? " Names and shapes were compared, values were not."
                      : " Names, shapes and tiles were compared, values were not.";
  return text;
}

void draw_question(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "COMPARE WITH");
  if (state.compare_wanted) ImGui::SetKeyboardFocusHere();
  state.compare_wanted = false;
  Line path(frame, column, 32);
  const bool entered = path.field("compare/path", "path of another checkpoint", state.compare_path,
                                  "The path of the other checkpoint.  (Enter compares)",
                                  path.room_next_to_button("Browse…"));
  if (path.button("compare/browse", "Browse…", "Chooses the other checkpoint from a folder."))
    browse_to_compare(frame, state);
  Line line(frame, column, 30, Gap::kMedium);
  const bool go =
      line.button("compare/go", "Compare",
                  "Compares names, dtypes, shapes and chunks. No data file is opened.") ||
      entered;
  const bool data = line.button("compare/data", "Compare values too",
                                "Compares every value too: both checkpoints are read whole.");
  if (line.button("compare/close", "Close", "Closes the comparison and shows the findings.  (Esc)",
                  ButtonStyle::kQuiet))
    state.compare_open = false;
  if ((go || data) && !state.compare_path.empty() && !frame.runs("compare"))
    frame.emit(CompareCommand{state.compare_path, data});
  if (frame.snapshot.compared == nullptr)
    caption(frame, column,
            "Names, dtypes, shapes and tiles are compared without reading a data file. Comparing "
            "values reads both checkpoints whole.");
}

void draw_side(Frame& frame, Column& column, const char* label,
               const std::optional<TensorSide>& side, const std::optional<TensorSide>& other) {
  if (!side) return row(frame, column, label, "not there", frame.theme.bad);
  row_extents(frame, column, label, side->shape, other ? ExtentsView(other->shape) : ExtentsView{},
              frame.theme.bad);
  row(frame, column, "", fmt::format("{}, {}", name(side->dtype), plural(side->tiles, "tile")),
      frame.theme.text);
}

// Draws the same elements with the other program's names and shapes.
void draw_paired_names(Frame& frame, const UiState& state, Column& column) {
  const verbs::PairedTensors* pair = shown_pair(frame, state);
  if (pair == nullptr) return;
  const bool is_from = frame.snapshot.paired->is_first_from;
  const auto& here = is_from ? pair->from : pair->to;
  const auto& there = is_from ? pair->to : pair->from;
  row(frame, column, "this checkpoint", short_list_text(here), frame.theme.text);
  row(frame, column, "the other", short_list_text(there), frame.theme.text);
}

void draw_values(Frame& frame, Column& column, const ValueDifference& values) {
  const ElementDifference& elements = values.elements;
  const Rgba text = frame.theme.text;
  row(frame, column, "differing",
      human_count(elements.differing) + " of " + human_count(values.compared), text);
  row(frame, column, "max |a-b|", fmt::format("{}", elements.max_abs), text);
  if (!values.by_value) row(frame, column, "max ULP", human_count(elements.max_ulp), text);
  if (values.cosine) row(frame, column, "cosine", fmt::format("{:.9g}", *values.cosine), text);
  if (elements.nan != 0)
    row(frame, column, "NaN in one", human_count(elements.nan), frame.theme.bad);
  if (values.unread != 0)
    row(frame, column, "could not be read", human_count(values.unread), frame.theme.bad);
  if (!values.first) return;
  row(frame, column, "first at", to_text(ExtentsView(values.first->index)), text);
  row(frame, column, "first difference (this, other)", values.first->a + ", " + values.first->b,
      text);
}

void draw_selected(Frame& frame, const UiState& state, Column& column,
                   const TensorDifference& tensor) {
  head(frame, column, "THIS DIFFERENCE");
  row(frame, column, "name", tensor.fqn, frame.theme.text);
  row(frame, column, "kind", name(tensor.kind), frame.theme.text);
  if (!tensor.other.empty()) row(frame, column, "there named", tensor.other, frame.theme.text);
  if (frame.snapshot.paired != nullptr) {
    draw_paired_names(frame, state, column);
  } else {
    draw_side(frame, column, "this checkpoint", tensor.a, tensor.b);
    draw_side(frame, column, "the other", tensor.b, tensor.a);
  }
  if (tensor.values) draw_values(frame, column, *tensor.values);
  for (const std::string& why : tensor.why) caption(frame, column, why);
  if (tensor.error)
    paragraph(frame, column, frame.fonts.small, frame.theme.bad,
              tensor.error->place.file + ": " + tensor.error->message);
  gap(frame, column, Gap::kMedium);
}

// Opens the map of names between two programs, or the way to find one.
void draw_map_chip(Frame& frame, UiState& state, Column& column,
                   const CheckpointDifference& difference) {
  // Differences are sorted by kind, those that only one checkpoint has first.
  const auto& all = difference.tensors;
  const auto added = std::partition_point(all.begin(), all.end(), [](const TensorDifference& one) {
    return one.kind < DifferenceKind::kAdded;
  });
  const bool may_be_renamed =
      added != all.begin() && added != all.end() && added->kind == DifferenceKind::kAdded;
  const bool is_paired = frame.snapshot.paired != nullptr;
  if (is_paired ? state.names.open : !may_be_renamed) return;
  const Action action = is_paired ? Action::kNamesMap : Action::kLearnNames;
  if (Line(frame, column, 22, Gap::kMedium)
          .chip_button(is_paired ? "compare/map" : "compare/learn",
                       is_paired ? "Show the map of names" : "Find the map of names", action))
    run(action, frame, state);
}

// Draws only the visible rows.
void draw_differences(Frame& frame, Column& column, const std::vector<TensorDifference>& tensors) {
  const ImFont* mono = frame.fonts.mono_small;
  float height = frame.px(24), top = ImGui::GetWindowPos().y;
  float bottom = top + ImGui::GetWindowHeight();
  auto above = static_cast<std::size_t>(std::max(0.0f, (top - column.y) / height));
  for (std::size_t i = std::min(above, tensors.size()); i < tensors.size(); ++i) {
    float y = column.y + height * static_cast<float>(i), middle = y + height / 2;
    if (y > bottom) break;
    ImGui::SetCursorScreenPos({column.left - frame.px(6), y});
    ImGui::PushID(static_cast<int>(i));
    const bool clicked =
        row_control(frame, "row", fmt::format("compare/row/{}", i),
                    {column.width() + frame.px(12), height}, frame.snapshot.difference == i,
                    Tip([&] { return printable(tensors[i].fqn) + "\nShows this difference."; }));
    if (frame.snapshot.difference == i || ImGui::IsItemHovered())
      column.draw->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                                 frame.theme.selected, frame.px(4));
    focus_ring(frame, column.draw);
    ImGui::PopID();
    if (clicked) frame.emit(DifferenceCommand{i});
    draw_sign(frame, column.draw, {column.left + frame.px(6), middle}, frame.px(6),
              sign_of_kind(tensors[i].kind));
    float used = draw_text_ending_at(column.draw, frame.fonts.small, column.right, middle,
                                     frame.theme.quiet, name(tensors[i].kind));
    text_from(column.draw, mono, column.left + frame.px(20), middle, frame.theme.text,
              elide_path(tensors[i].fqn, column.width() - used - frame.px(36), measure_with(mono)));
  }
  column.take(height * static_cast<float>(tensors.size()));
}

}  // namespace

void draw_compare(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "compare", region, frame.theme.side, true);
  Column column{ImGui::GetWindowDrawList(), region.min.x + frame.px(17),
                region.max.x - frame.px(16), region.min.y + frame.px(12) - ImGui::GetScrollY()};
  draw_question(frame, state, column);
  if (frame.snapshot.compared != nullptr) {
    const CheckpointDifference& difference = frame.snapshot.compared->difference;
    paragraph(frame, column, frame.fonts.mono_small, frame.theme.quiet,
              frame.snapshot.compared_with, Gap::kSmall);
    body(frame, column, verdict_text(difference, frame.snapshot.paired != nullptr), Gap::kTight);
    for (const std::string& doubt : difference.doubts) caption(frame, column, doubt);
    gap(frame, column, Gap::kMedium);
    draw_map_chip(frame, state, column, difference);
    if (frame.snapshot.difference && *frame.snapshot.difference < difference.tensors.size())
      draw_selected(frame, state, column, difference.tensors[*frame.snapshot.difference]);
    if (!difference.tensors.empty()) head(frame, column, "TENSORS");
    draw_differences(frame, column, difference.tensors);
    if (!difference.entries.empty())
      caption(frame, column,
              "and entries that are not tensors: " + human_count(difference.entries.size()));
  }
  close_column(frame, column);
  column.draw->AddLine({region.min.x, region.min.y}, {region.min.x, region.max.y},
                       frame.theme.line);
  end_region();
}

}  // namespace shw
