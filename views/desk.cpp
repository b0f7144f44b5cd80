#include "views/desk.h"

#include <algorithm>

#include "views/actions.h"
#include "views/browser.h"
#include "views/look_panels.h"
#include "views/parts.h"

namespace shw {
namespace {

struct Regions {
  Region verdict, left, centre, right, job;
};

Regions regions_of(const Frame& frame, ImVec2 size) {
  float top = frame.px(52), bottom = size.y - frame.px(frame.job.running ? 66 : 36);
  float left = std::clamp(std::floor(size.x * 0.222f), frame.px(270), frame.px(420));
  float right = size.x - std::clamp(std::floor(size.x * 0.257f), frame.px(320), frame.px(460));
  return {{{0, 0}, {size.x, top}},
          {{0, top}, {left, bottom}},
          {{left, top}, {right, bottom}},
          {{right, top}, {size.x, bottom}},
          {{0, bottom}, size}};
}

void draw_regions(Frame& frame, DeskState& state, const Regions& regions) {
  draw_verdict_bar(frame, state, regions.verdict);
  Region all{regions.left.min, regions.right.max};
  if (frame.snapshot.checkpoint == nullptr) {
    if (frame.snapshot.error)
      draw_open_error(frame, state, all);
    else
      draw_welcome(frame, state, all);
  } else if (look_is_open(frame, state)) {
    Region look = look_region(frame, regions.left, regions.centre, regions.right);
    if (look.min.x >= regions.left.max.x) draw_left(frame, state, regions.left);
    draw_look(frame, state, look);
    if (look.max.x <= regions.right.min.x) draw_inspector(frame, state, regions.right);
  } else {
    draw_left(frame, state, regions.left);
    draw_tensor(frame, state, regions.centre);
    draw_inspector(frame, state, regions.right);
  }
  draw_job_bar(frame, state, regions.job);
}

}  // namespace

void draw_desk(Frame& frame, DeskState& state) {
  if (frame.marks != nullptr) frame.marks->items.clear();
  if (frame.snapshot.checkpoint == nullptr)
    state.plan_open = state.explain_open = state.mesh_open = false;
  run_keys(frame, state);
  ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, frame.theme.background);
  ImGui::Begin("##desk", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  draw_regions(frame, state, regions_of(frame, size));
  ImGui::End();
  if (state.plan_open) draw_plan_panel(frame, state);
  if (state.certificate_open) draw_certificate(frame, state);
  if (state.explain_open) draw_explain(frame, state);
  if (state.mesh_open) draw_mesh_panel(frame, state);
  if (state.browser.open) draw_browser(frame, state);
  if (state.palette_open) draw_palette(frame, state);
}

}  // namespace shw
