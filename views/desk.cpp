#include "views/desk.h"

#include <fmt/core.h>

#include "views/actions.h"
#include "views/columns.h"
#include "views/panels/browser.h"
#include "views/panels/content_panels.h"
#include "views/panels/panels.h"
#include "views/panels/plan_parts.h"
#include "views/parts.h"

namespace shw {
namespace {

void draw_right(Frame& frame, UiState& state, Region region) {
  if (state.compare_open)
    draw_compare(frame, state, region);
  else
    draw_inspector(frame, state, region);
}

// Draws the left column, or the rail that opens it.
void draw_left_side(Frame& frame, UiState& state, const Regions& regions) {
  if (regions.left_rail)
    draw_rail(frame, "rail/left", regions.left, state.layout.left, true);
  else
    draw_left(frame, state, regions.left);
}
void draw_right_side(Frame& frame, UiState& state, const Regions& regions) {
  if (regions.right_rail)
    draw_rail(frame, "rail/right", regions.right, state.layout.right, false);
  else
    draw_right(frame, state, regions.right);
}

// Draws the side columns, or rails, which may be expanded over the map.
void draw_columns(Frame& frame, UiState& state, const Regions& regions) {
  UiLayout& layout = state.layout;
  if (!regions.left_rail) layout.left.peeked = false;
  if (!regions.right_rail) layout.right.peeked = false;
  draw_left_side(frame, state, regions);
  if (regions.left_rail && !layout.left.peeked) move_in_hidden_list(frame, state);
  if (names_map_is_open(frame, state))
    draw_names_map(frame, state, regions.centre);
  else if (state.table.open)
    draw_tensor_table(frame, state, regions.centre);
  else
    draw_tensor(frame, state, regions.centre);
  draw_right_side(frame, state, regions);
  draw_splitters(frame, layout, regions);
  text_layer(frame, 1);
  if (layout.left.peeked) draw_left(frame, state, regions.left_rail_column);
  if (layout.right.peeked) draw_right(frame, state, regions.right_rail_column);
  text_layer(frame, 0);
  bool clicked = ImGui::IsMouseClicked(ImGuiMouseButton_Left) &&
                 ImGui::IsMouseHoveringRect(regions.centre.min, regions.centre.max, false);
  auto inside = [](Region region) {
    return ImGui::IsMouseHoveringRect(region.min, region.max, false);
  };
  if (clicked && !inside(regions.left_rail_column)) layout.left.peeked = false;
  if (clicked && !inside(regions.right_rail_column)) layout.right.peeked = false;
}

void draw_regions(Frame& frame, UiState& state, const Regions& regions) {
  draw_verdict_bar(frame, state, regions.verdict);
  Region all{regions.left.min, regions.right.max};
  if (frame.snapshot.checkpoint == nullptr) {
    if (run_is_shown(frame.snapshot))
      draw_run(frame, state, all);
    else if (frame.snapshot.error)
      draw_open_error(frame, state, all);
    else
      draw_welcome(frame, state, all);
  } else if (viewer_is_open(frame, state)) {
    Region look = viewer_region(frame, regions.left, regions.centre, regions.right);
    if (look.min.x >= regions.left.max.x) draw_left_side(frame, state, regions);
    draw_viewer(frame, state, look);
    if (look.max.x <= regions.right.min.x) draw_right_side(frame, state, regions);
  } else {
    draw_columns(frame, state, regions);
  }
  if (frame.snapshot.checkpoint != nullptr) state.welcome_shown = false;
  const float card = regions.job.min.y + stopped_card_height(frame);
  draw_stopped_card(frame, state, {regions.job.min, {regions.job.max.x, card}});
  draw_job_bar(frame, state, {{regions.job.min.x, card}, regions.job.max});
}

// Tab completes the path in the browser, as in a shell.
int tab_steps(const Frame& frame, const UiState& state) {
  if (state.browser.open && ImGui::GetIO().WantTextInput) return 0;
  return (frame.pressed({Key::kTab}) ? 1 : 0) -
         (frame.pressed({Key::kTab, false, true, false}) ? 1 : 0);
}

}  // namespace

void draw_ui(Frame& frame, UiState& state) {
  if (frame.marks != nullptr) {
    frame.marks->items.clear();
    frame.marks->texts.clear();
    frame.marks->tooltip.clear();
    frame.marks->tips.clear();
    frame.marks->focused.clear();
    frame.marks->has_ring = false;
  }
  frame.tabs = &state.tabs;
  state.tabs.begin(tab_steps(frame, state));
  record_texts(frame.marks);
  if (frame.snapshot.checkpoint == nullptr)
    state.plan_open = state.mesh_open = state.save.open = false;
  restore_panel(frame, state);
  run_keys(frame, state);
  forget_plan_inputs(frame, state);
  handle_dropped_path(frame, state);
  ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, frame.theme.background);
  // Each tab has its own windows, so that each scrolls separately.
  const std::uint64_t tab = frame.open_tabs == nullptr ? 0 : frame.open_tabs->id;
  ImGui::Begin(fmt::format("##desk{}", tab).c_str(), nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  Regions regions =
      regions_of(size, frame.scale, job_bar_height(frame) + stopped_card_height(frame),
                 state.layout, tab_strip_height(frame));
  state.left_rail = regions.left_rail;
  state.right_rail = regions.right_rail;
  draw_tab_strip(frame, state, {{0, 0}, {size.x, regions.verdict.min.y}});
  draw_regions(frame, state, regions);
  if (frame.marks != nullptr)
    frame.marks->items["region/verdict"] = {regions.verdict.min.x, regions.verdict.min.y,
                                            regions.verdict.max.x, regions.verdict.max.y};
  draw_context_menu(frame, state);
  ImGui::End();
  draw_notices(frame, state, regions.job.min.y);
  text_layer(frame, 3);
  draw_tour(frame, state);
  text_layer(frame, 2);
  if (state.plan_open) draw_plan_panel(frame, state);
  if (state.certificate_open) draw_certificate(frame, state);
  if (state.explain_open) draw_explain(frame, state);
  if (state.mesh_open) draw_mesh_panel(frame, state);
  if (state.browser.open) draw_browser(frame, state);
  draw_secondary_panels(frame, state);
  if (state.save.open) draw_save_panel(frame, state);
  if (state.palette_open) draw_palette(frame, state);
  if (state.asked) draw_question(frame, state);
  record_texts(nullptr);
}

}  // namespace shw
