// Files and ranks of the overview: the damaged ones first. A click lists the tensors of a rank.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "views/controls.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

std::string state_text(const FileShare& share) {
  std::string text = share.is_missing ? "missing" : human_bytes(share.bytes);
  if (share.unreadable_tiles != 0)
    text += fmt::format(", {} of {} lost", human_count(share.unreadable_tiles),
                        plural(share.tiles, "tile"));
  else if (share.tiles != 0)
    text += ", " + plural(share.tiles, "tile");
  return text;
}

std::string file_tip(const FileShare& share) {
  std::string text = printable(share.path) + "\n" + state_text(share);
  if (share.rank) text += fmt::format("\nrank {}. A click lists its tensors.", *share.rank);
  return text;
}

float names_width(const Column& column) {
  return std::floor(column.width() * 0.34f);
}

// Shortens names. Files of one model differ in the middle: "model-00001-of-00002.safetensors".
std::vector<std::string> shown_names(const Frame& frame, const FileShares& shares, float width) {
  std::vector<std::string_view> paths;
  for (const FileShare& share : shares.files) paths.push_back(share.path);
  return elide_apart(paths, width - frame.px(18), measure_with(frame.fonts.mono_small));
}

void draw_share_row(Frame& frame, UiState& state, Column& column, const FileShare& share,
                    const std::string& name, std::uint64_t most, const std::string& id) {
  const float height = frame.px(24), middle = column.y + height / 2;
  const bool is_bad = share.mark > 1;
  ImGui::SetCursorScreenPos({column.left, column.y});
  const auto tip = [&] { return file_tip(share); };
  const bool clicked = row_control(frame, id.c_str(), id, {column.width(), height}, false, tip);
  const bool lit = ImGui::IsItemHovered();
  if (clicked && share.rank) {
    state.filter = fmt::format("rank:{}", *share.rank);
    frame.emit(FilterCommand{state.filter});
  }
  const std::string said = state_text(share);
  const float names = names_width(column);
  const float bar_from = column.left + names + frame.px(10);
  const float bar_to =
      column.right - text_width(frame.fonts.small, "1,000 MB, 1,000 of 1,000 tiles lost");
  if (is_bad)
    draw_sign(frame, column.draw, {column.left + frame.px(6), middle}, frame.px(6), Sign::kBad);
  text_from(column.draw, frame.fonts.mono_small, column.left + frame.px(18), middle,
            is_bad ? frame.theme.bad : mix(frame.theme.quiet, frame.theme.text, 0.6f), name);
  const float part =
      most == 0 ? 0.0f
                : static_cast<float>(static_cast<double>(share.bytes) / static_cast<double>(most));
  if (bar_to > bar_from)
    column.draw->AddRectFilled(
        {bar_from, middle - frame.px(4)},
        {bar_from + std::max(frame.px(2), (bar_to - bar_from) * part), middle + frame.px(4)},
        is_bad ? frame.theme.bad
        : lit  ? frame.theme.quiet
               : frame.theme.control,
        frame.px(2));
  draw_text_ending_at(column.draw, frame.fonts.small, column.right, middle,
                      is_bad ? frame.theme.text : frame.theme.quiet, said);
  focus_ring(frame, column.draw);
  column.take(height);
}

// A field for the number of ranks per node, which no checkpoint records.
void draw_ranks_per_node(Frame& frame, UiState& state, Column& column) {
  constexpr std::string_view kLabel = "ranks per node";
  Line line(frame, column, 28);
  line.skip(frame.px(18));
  line.text(frame.fonts.small, frame.theme.quiet, kLabel);
  std::string& text = state.panel_state.ranks_per_node;
  std::uint32_t& ranks = state.panel_state.settings.ranks_per_node;
  if (state.panel_state.ranks_wanted) {
    ImGui::SetKeyboardFocusHere();
    ImGui::SetScrollY(
        std::max(0.0f, line.top() - ImGui::GetWindowPos().y + ImGui::GetScrollY() - frame.px(60)));
  }
  state.panel_state.ranks_wanted = false;
  if (line.field("overview/ranks-per-node", "8", text,
                 "Sums files and damage by node. Empty: not by node.  (Enter)", frame.px(72),
                 true)) {
    std::uint32_t typed = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), typed);
    const bool is_number = code == std::errc{} && end == text.data() + text.size();
    if (text.empty() || (is_number && typed <= verbs::kMaxRanksPerNode))
      ranks = typed;
    else
      show_toast(frame, state,
                 fmt::format("A number from 1 to {}.", human_count(verbs::kMaxRanksPerNode)));
  }
}

void draw_node_shares(Frame& frame, UiState& state, Column& column) {
  const std::vector<FileShare> nodes =
      node_shares(frame.digest.mesh->shares, state.panel_state.settings.ranks_per_node);
  std::uint64_t most = 0;
  for (const FileShare& node : nodes) most = std::max(most, node.bytes);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    draw_share_row(frame, state, column, nodes[i],
                   elide_end(nodes[i].path, names_width(column) - frame.px(18),
                             measure_with(frame.fonts.mono_small)),
                   most, fmt::format("overview/node/{}", i));
  if (!nodes.empty()) gap(frame, column, Gap::kMedium);
}

}  // namespace

void draw_file_shares(Frame& frame, UiState& state, Column& column) {
  const FileShares& shares = frame.digest.overview->files;
  if (shares.files.size() < 2) return;
  const bool has_ranks = frame.digest.mesh->shares.size() > 1;
  head(frame, column, has_ranks ? "FILES AND RANKS" : "FILES");
  if (has_ranks) {
    draw_ranks_per_node(frame, state, column);
    draw_node_shares(frame, state, column);
  }
  const std::vector<std::string> names = shown_names(frame, shares, names_width(column));
  for (std::size_t i = 0; i < shares.files.size(); ++i)
    draw_share_row(frame, state, column, shares.files[i], names[i], shares.most_bytes,
                   fmt::format("overview/file/{}", i));
  if (shares.more != 0) {
    std::string more = "and " + plural(shares.more, "other file");
    if (shares.more_damaged != 0)
      more += ", " + human_count(shares.more_damaged) + " of them damaged";
    Column inside = indented(frame, column, 18);
    caption(frame, inside, more, Gap::kSmall);
    column.y = inside.y;
  }
  gap(frame, column, Gap::kLarge);
}

}  // namespace shw
