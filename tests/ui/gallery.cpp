// Draws one prepared state into a PNG, without a session: gallery STATE OUT.png [WIDTH HEIGHT SCALE
// OVERLAY THEME]. Exits with 77 without EGL, which ctest counts as skipped.
#include <imgui.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "app/gui/fonts.h"
#include "app/gui/gl_layouts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "make/snapshots.h"
#include "views/desk.h"

using namespace shw;

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "gallery STATE OUT.png [W H SCALE OVERLAY THEME]\n"), 3;
  std::string wanted = argv[1];
  int width = argc > 4 ? std::atoi(argv[3]) : 1440, height = argc > 4 ? std::atoi(argv[4]) : 900;
  float scale = argc > 5 ? static_cast<float>(std::atof(argv[5])) : 1;
  std::string overlay = argc > 6 ? argv[6] : "";
  auto said = verbs::ui_theme(argc > 7 ? argv[7] : "dark");
  if (!said) return std::fprintf(stderr, "no theme %s\n", argv[7]), 3;
  const Theme& theme = theme_of(*said);
  make::State state;
  for (make::State& each : make::all_states()) {
    if (each.name == wanted) state = each;
  }
  if (wanted == "giant") state = {"giant", make::many_tiles(1000), {}};
  if (wanted == "100k") state = {"100k", make::many_tensors(100'000), {}};
  if (state.name.empty()) return std::fprintf(stderr, "no state %s\n", wanted.c_str()), 3;
  auto screen = Offscreen::create(width, height);
  if (!screen) return std::fprintf(stderr, "skipped: %s\n", screen.error().message.c_str()), 77;
  create_imgui(theme, scale, true);
  if (!(*screen)->attach_imgui()) return 77;
  Fonts fonts = load_fonts(scale);
  {
    GlLayouts layouts(nullptr);
    auto digest = make_digest(state.snapshot);
    UiState desk;
    desk.filter = state.snapshot->filter;
    desk.plan_open = overlay == "plan";
    desk.explain_open = overlay == "explain";
    desk.palette_open = overlay == "palette";
    desk.panel_state.settings_open = overlay == "settings";
    desk.panel_state.settings.theme = *said;
    desk.map.pinned = state.snapshot->chunk;
    std::vector<double> times;
    int frames = std::getenv("FRAME_TIMES") != nullptr ? 200 : 6;
    for (int i = 0; i < frames; ++i) {
      (*screen)->new_frame();
      ImGui::GetIO().DeltaTime = 1.0f / 60;
      auto begin = std::chrono::steady_clock::now();
      ImGui::NewFrame();
      std::vector<Command> commands;
      Frame frame{*digest, *state.snapshot, state.job, theme, fonts, layouts, commands, {}};
      frame.scale = scale;
      frame.stable = true;
      draw_ui(frame, desk);
      ImGui::Render();
      times.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      if (i < 6 || i + 1 == frames) (*screen)->render();
      layouts.wait();
    }
    std::sort(times.begin(), times.end());
    if (frames > 6)
      std::printf("%s: median %.2f ms, p95 %.2f ms, worst %.2f ms\n", wanted.c_str(),
                  times[100] * 1e3, times[190] * 1e3, times[199] * 1e3);
    if (auto written = write_png(argv[2], (*screen)->read()); !written) return 4;
  }
  screen->reset();
  ImGui::DestroyContext();
  return 0;
}
