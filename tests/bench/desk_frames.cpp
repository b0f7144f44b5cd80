// What a frame of every view costs on a checkpoint of 250,000 tensors and a million tiles, and on
// one tensor of a million tiles: CPU of the thread that draws, so that a busy machine does not
// count; what the views keep in memory; and what a keystroke in the filter takes.
//
//   bench_desk_frames [TENSORS]      bars: 4 ms at the 95th percentile, 100 MB, 16 ms
#include <imgui.h>
#include <malloc.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "app/gui/fonts.h"
#include "app/gui/gl_layouts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "core/verbs/filter.h"
#include "core/verbs/sort.h"
#include "make/snapshots.h"
#include "views/desk.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

constexpr int kFrames = 240, kWarm = 12;
constexpr double kFrameBar = 4, kKeyBar = 16, kMemoryBar = 100;

double thread_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}
double megabytes_in_use() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) * 1e-6;
}
// Until it is done once; the CPU of this thread in milliseconds.
template <class Work>
double cost_of(Work work) {
  double begin = thread_milliseconds();
  work();
  return thread_milliseconds() - begin;
}

int over_the_bar = 0;
void tell(const std::string& what, double value, double bar, const char* unit, const char* more) {
  bool over = value > bar;
  over_the_bar += over ? 1 : 0;
  std::printf("%-44s %7.2f %s%s%s\n", what.c_str(), value, unit, more,
              over ? "   OVER THE BAR" : "");
  std::fflush(stdout);
}

struct View {
  const char* name;
  std::shared_ptr<Snapshot> snapshot;
  void (*open)(DeskState&);
};

struct Measured {
  Offscreen& screen;
  Fonts& fonts;

  // A hand that never rests: the mouse wanders over everything, the wheel turns.
  void measure(const View& view) {
    GlLayouts layouts(nullptr);
    auto digest = make_digest(view.snapshot);
    double before = megabytes_in_use();
    DeskState desk;
    view.open(desk);
    std::vector<double> times;
    ImVec2 size = ImGui::GetIO().DisplaySize;
    for (int i = 0; i < kWarm + kFrames; ++i) {
      screen.new_frame();
      ImGui::GetIO().DeltaTime = 1.0f / 60;
      float along = static_cast<float>(i % 97) / 97, down = static_cast<float>(i % 31) / 31;
      move_mouse({size.x * along, size.y * (0.1f + 0.85f * down)});
      turn_wheel(i % 3 == 0 ? (i % 2 == 0 ? -2.0f : 1.0f) : 0.0f);
      double cost = cost_of([&] {
        ImGui::NewFrame();
        std::vector<Command> commands;
        JobState job;
        Frame frame{*digest, *view.snapshot, job, dark_theme(), fonts, layouts, commands, {}};
        frame.now = i / 60.0;
        draw_desk(frame, desk);
        ImGui::Render();
      });
      if (i >= kWarm) times.push_back(cost);
      if (i < kWarm) layouts.wait();
    }
    turn_wheel(0);
    std::sort(times.begin(), times.end());
    char more[96];
    std::snprintf(more, sizeof more, "   (median %.2f, worst %.2f; keeps %.1f MB)",
                  times[times.size() / 2], times.back(), megabytes_in_use() - before);
    tell(view.name, times[times.size() * 95 / 100], kFrameBar, "ms", more);
  }
};

void measure_keys(const Snapshot& snapshot) {
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  auto before = make_digest(std::make_shared<Snapshot>(snapshot));
  for (const char* text :
       {"d", "down", "exp_avg w1", "layers.77", "finding:*", "dtype:f32 rank:3"}) {
    std::vector<std::uint32_t> order;
    double filtering =
        cost_of([&] { order = *filter_tensors(checkpoint, snapshot.report.get(), text, nullptr); });
    auto next = std::make_shared<Snapshot>(snapshot);
    next->order = std::make_shared<const std::vector<std::uint32_t>>(order);
    next->filter = text;
    double digesting = cost_of([&] { make_digest(next, before.get()); });
    char more[96];
    std::snprintf(more, sizeof more, "   (filter %.1f, rows %.1f; %zu pass)", filtering, digesting,
                  order.size());
    tell(std::string("a keystroke: ") + text, filtering + digesting, kKeyBar, "ms", more);
  }
}

std::shared_ptr<Snapshot> compared(std::shared_ptr<Snapshot> snapshot) {
  auto s = std::make_shared<Snapshot>(*snapshot);
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = s->checkpoint;
  for (std::uint32_t t = 0; t < s->checkpoint->tensor_count(); ++t) {
    TensorDifference one;
    one.fqn = s->checkpoint->fqn(TensorId{t});
    one.kind = DifferenceKind::kValues;
    both->difference.tensors.push_back(one);
  }
  s->compared = both;
  s->difference = 7;
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  auto tensors = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 250'000);
  auto screen = Offscreen::create(1920, 1080);
  if (!screen) return std::fprintf(stderr, "skipped: %s\n", screen.error().message.c_str()), 77;
  create_imgui(dark_theme(), 1, true);
  if (!(*screen)->attach_imgui()) return 77;
  Fonts fonts = load_fonts(1);
  int side = tensors >= 100'000 ? 1000 : 100;
  auto many = make::many_tensors(tensors, 4);
  auto giant = make::many_tiles(side);
  auto demo = make::demo_planned();
  std::printf("%u tensors in %u tiles; a tensor of %u tiles\n", many->checkpoint->tensor_count(),
              many->checkpoint->chunk_count(), giant->checkpoint->chunk_count());
  double before = megabytes_in_use();
  std::shared_ptr<const Digest> digest;
  double cost = cost_of([&] { digest = make_digest(many); });
  tell("memory of what views draw from", megabytes_in_use() - before, kMemoryBar, "MB", "");
  std::printf("%-44s %7.2f ms   (once, beside the frames)\n", "making it", cost);
  digest.reset();
  measure_keys(*many);
  auto none = [](DeskState&) {};
  const View views[] = {
      {"desk, layers folded", many, none},
      {"desk, layers unfolded", many,
       [](DeskState& d) { d.unfolded = {"optimizer.state.model.layers.0-7812"}; }},
      {"table", many, [](DeskState& d) { d.table.open = true; }},
      {"overview", many, [](DeskState& d) { d.summary_open = true; }},
      {"compare, every tensor differs", compared(many),
       [](DeskState& d) { d.compare_open = true; }},
      {"mesh panel", many, [](DeskState& d) { d.mesh_open = true; }},
      {"settings", many, [](DeskState& d) { d.habits.settings_open = true; }},
      {"palette", many, [](DeskState& d) { d.palette_open = true; }},
      {"bytes, not there yet", many, [](DeskState& d) { d.bytes.open = true; }},
      {"values, not there yet", many, [](DeskState& d) { d.values.open = true; }},
      {"map of a million tiles", giant, none},
      {"map of a million tiles, zoomed", giant, [](DeskState& d) { d.map.zoom = 8; }},
      {"map of a million tiles, by file", giant,
       [](DeskState& d) { d.colour_by = ColourBy::kFile; }},
      {"map of a million tiles, by finding", giant,
       [](DeskState& d) { d.colour_by = ColourBy::kFinding; }},
      {"map of a million tiles, by NaN", giant, [](DeskState& d) { d.colour_by = ColourBy::kOdd; }},
      {"map of a million tiles, by magnitude", giant,
       [](DeskState& d) { d.colour_by = ColourBy::kGreatest; }},
      {"map of a million tiles, by zeros", giant,
       [](DeskState& d) { d.colour_by = ColourBy::kZeros; }},
      {"plan", demo, [](DeskState& d) { d.plan_open = true; }},
      {"explain", demo, [](DeskState& d) { d.explain_open = true; }},
      {"saved, expected, after", demo, none},
  };
  Measured measured{**screen, fonts};
  for (const View& view : views) measured.measure(view);
  (*screen).reset();
  ImGui::DestroyContext();
  return over_the_bar == 0 ? 0 : 1;
}
