// Measures the frame time of every view for a checkpoint of 250,000 tensors and a million tiles,
// and for one tensor of a million tiles in every colouring; also the memory of the views and the
// time of a keystroke in the filter. tests/bench/desk.sh runs it.
//
//   bench_desk_frames [TENSORS]
#include <imgui.h>
#include <malloc.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "app/gui/fonts.h"
#include "app/gui/gl_layouts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "core/verbs/names/tensor_order.h"
#include "make/snapshots.h"
#include "tests/bench/bars.h"
#include "views/desk.h"
#include "views/imgui_versions.h"
#include "views/verdict.h"

using namespace shw;

namespace {

constexpr int kFrames = 240, kWarm = 12;
constexpr double kFrameBar = 4, kKeyBar = 16, kMemoryBar = 100;

double megabytes_in_use() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) * 1e-6;
}
// CPU milliseconds of this thread for one call.
template <class Work>
double cost_of(Work work) {
  double begin = thread_milliseconds();
  work();
  return thread_milliseconds() - begin;
}

struct View {
  const char* name;
  std::shared_ptr<Snapshot> snapshot;
  void (*open)(UiState&);
};

struct Measured {
  Offscreen& screen;
  Fonts& fonts;

  // Constant input: the mouse moves over everything, and the wheel turns.
  void measure(const View& view) {
    GlLayouts layouts(nullptr);
    auto digest = make_digest(view.snapshot);
    double before = megabytes_in_use();
    UiState desk;
    Marks marks;  // as in the window
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
        frame.marks = &marks;
        draw_ui(frame, desk);
        layouts.end_frame();
        (void)window_title(*digest, job);
        ImGui::Render();
      });
      if (i >= kWarm) times.push_back(cost);
      if (i < kWarm) layouts.wait();
    }
    turn_wheel(0);
    std::sort(times.begin(), times.end());
    double kept = megabytes_in_use() - before;
    most_kept = std::max(most_kept, kept);
    char more[96];
    std::snprintf(more, sizeof more, "median %.2f, worst %.2f, keeps %.1f MB",
                  times[times.size() / 2], times.back(), kept);
    tell_bar(std::string("frame: ") + view.name, times[times.size() * 95 / 100], kFrameBar, "ms",
             more);
  }
  double most_kept = 0;
};

// Types a text letter by letter and deletes it again. Measures the slowest key press, including the
// rows that it shows.
void measure_keys(const Snapshot& snapshot, const char* text, SortKey sort, const Digest* before) {
  TensorOrder list;
  ListOptions wish{snapshot.checkpoint, snapshot.report, "", sort, false};
  (void)list.list(wish, nullptr);
  std::shared_ptr<const Digest> digest;
  double worst = 0, sum = 0, of_rows = 0;
  std::size_t passed = 0;
  std::string typed;
  auto key = [&] {
    wish.filter = typed;
    std::vector<std::uint32_t> order;
    double filtering = cost_of([&] { order = *list.list(wish, nullptr); });
    auto next = std::make_shared<Snapshot>(snapshot);
    next->order = std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
    next->filter = typed;
    double rows = cost_of([&] { digest = make_digest(next, digest ? digest.get() : before); });
    if (!typed.empty()) passed = next->order->size();
    if (filtering + rows > worst) of_rows = rows;
    worst = std::max(worst, filtering + rows);
    sum += filtering + rows;
  };
  std::string whole = text;
  for (char letter : whole) {
    typed += letter;
    key();
  }
  double mean = sum / static_cast<double>(whole.size());
  typed.clear();
  key();
  char more[96];
  std::snprintf(more, sizeof more, "mean %.2f; of the worst, rows %.2f; %zu pass", mean, of_rows,
                passed);
  tell_bar("keystroke: " + whole + (sort == SortKey::kRecorded ? "" : ", sorted by name"), worst,
           kKeyBar, "ms", more);
}

// Half of the tiles have values, of every kind.
std::shared_ptr<Snapshot> looked_at(std::shared_ptr<Snapshot> snapshot) {
  auto values = std::make_shared<verbs::TileValues>(
      verbs::unexamined_tiles(*snapshot->checkpoint, *snapshot->tensor));
  std::mt19937 random(7);
  values->done = static_cast<std::uint32_t>(values->tiles.size() / 2);
  for (std::uint32_t t = 0; t < values->done; ++t) {
    verbs::TileNumbers& tile = values->tiles[t];
    tile.state = verbs::TileNumbers::State::kLooked;
    tile.elements = 256;
    tile.nan = random() % 50 == 0 ? random() % 256 : 0;
    tile.zero = random() % 256;
    tile.greatest = 1e-6 * static_cast<double>(random() % 1'000'000);
  }
  auto s = std::make_shared<Snapshot>(*snapshot);
  s->tile_values = std::make_shared<const TileValuesOf>(TileValuesOf{{*s->tensor, values}});
  return s;
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

// One finding names every tensor, and a repair has filled them all.
std::shared_ptr<Snapshot> named_and_filled(const std::shared_ptr<Snapshot>& snapshot) {
  auto s = std::make_shared<Snapshot>(*snapshot);
  auto report = std::make_shared<CheckReport>(*s->report);
  Finding finding;
  finding.rule = "coverage-gap";
  finding.severity = Severity::kError;
  FillStep fill;
  for (TensorId tensor : s->checkpoint->tensors()) {
    finding.subjects.emplace_back(s->checkpoint->fqn(tensor));
    fill.tensors.emplace_back(s->checkpoint->fqn(tensor));
  }
  finding.evidence.emplace_back("tensors", finding.subjects);
  report->depth = Depth::kData;
  report->findings.insert(report->findings.begin(), finding);
  s->report = report;
  s->finding = 0;
  s->tensor = TensorId{static_cast<std::uint32_t>(s->checkpoint->tensor_count() - 1)};
  s->chunk = s->checkpoint->chunks(*s->tensor)[0];
  auto plan = std::make_shared<Plan>();
  plan->steps.emplace_back(fill);
  PlanEdit executed;
  executed.changed_tensors = changed_tensors(*plan);
  executed.plan = executed.whole = s->plan = plan;
  s->executed = std::make_shared<const PlanEdit>(executed);
  s->repaired = std::make_shared<const RepairResult>(RepairResult{"/runs/7/repaired", "", false});
  return s;
}

std::shared_ptr<Snapshot> browsing(std::size_t entries) {
  auto s = std::make_shared<Snapshot>();
  auto listing = std::make_shared<verbs::FolderListing>();
  listing->asked = listing->path = "/runs/";
  for (std::size_t i = 0; i < entries; ++i) {
    verbs::ListedPlace place;
    place.name = "step_" + std::to_string(i);
    listing->places.push_back(std::move(place));
  }
  listing->looked = entries;
  s->folder = listing;
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
  auto giant = make::many_tiles(side), looked = looked_at(giant);
  auto demo = make::demo_planned();
  double before = megabytes_in_use();
  std::shared_ptr<const Digest> digest;
  double cost = cost_of([&] { digest = make_digest(many); });
  char more[96];
  std::snprintf(more, sizeof more, "made once in %.0f ms, next to the frames", cost);
  double memory = megabytes_in_use() - before;
  std::string made = more;
  for (const char* text : {"down_proj", "w1.exp_avg_sq", "layers.77", "exp_avg w1", "~l77ew1s"})
    measure_keys(*many, text, SortKey::kRecorded, digest.get());
  measure_keys(*many, "layers.77", SortKey::kName, digest.get());
  measure_keys(*many, "dtype:f32 rank:3", SortKey::kRecorded, digest.get());
  before = megabytes_in_use();
  TensorOrder list;
  (void)list.list({many->checkpoint, many->report, "exp"}, nullptr);
  memory += megabytes_in_use() - before;
  digest.reset();
  auto none = [](UiState&) {};
  const View views[] = {
      {"desk, layers folded", many, none},
      {"desk, layers unfolded", many,
       [](UiState& d) { d.unfolded = {"state.model.layers.0-7811"}; }},
      {"a finding names every tensor", named_and_filled(many), none},
      {"browser, 100,000 entries", browsing(100'000),
       [](UiState& d) {
         d.browser.open = true;
         d.browser.text = "/runs/99";
         d.browser.asked = "/runs/";
       }},
      {"table", many, [](UiState& d) { d.table.open = true; }},
      {"overview", many, [](UiState& d) { d.summary_open = true; }},
      {"compare, every tensor differs", compared(many), [](UiState& d) { d.compare_open = true; }},
      {"mesh", many, [](UiState& d) { d.mesh_open = true; }},
      {"settings", many, [](UiState& d) { d.panel_state.settings_open = true; }},
      {"tour", many, [](UiState& d) { d.panel_state.tour_step = 1; }},
      {"palette", many, [](UiState& d) { d.palette_open = true; }},
      {"what a message means", many, [](UiState& d) { d.panel_state.errors_open = true; }},
      {"bytes", make::with_bytes(many), [](UiState& d) { d.bytes.open = true; }},
      {"bytes, not there yet", many, [](UiState& d) { d.bytes.open = true; }},
      {"values", make::with_values(make::demo_planned()), [](UiState& d) { d.values.open = true; }},
      {"values, not there yet", many, [](UiState& d) { d.values.open = true; }},
      {"a million tiles", giant, none},
      {"a million tiles, zoomed", giant, [](UiState& d) { d.map.zoom = 8; }},
      {"a million tiles, one rank set apart", giant, [](UiState& d) { d.isolated = 5; }},
      {"a million tiles by mesh axis", giant, [](UiState& d) { d.colour_axis = 0; }},
      {"a million tiles by file", giant, [](UiState& d) { d.colour_by = ColourBy::kFile; }},
      {"a million tiles by finding", giant, [](UiState& d) { d.colour_by = ColourBy::kFinding; }},
      {"a million tiles by NaN", looked, [](UiState& d) { d.colour_by = ColourBy::kNonFinite; }},
      {"a million tiles by NaN, none checked", giant,
       [](UiState& d) { d.colour_by = ColourBy::kNonFinite; }},
      {"a million tiles by magnitude", looked,
       [](UiState& d) { d.colour_by = ColourBy::kGreatest; }},
      {"a million tiles by zeros", looked, [](UiState& d) { d.colour_by = ColourBy::kZeros; }},
      {"plan", demo, [](UiState& d) { d.plan_open = true; }},
      {"explain", demo, [](UiState& d) { d.explain_open = true; }},
      {"certificate", make::demo_repaired(true), [](UiState& d) { d.certificate_open = true; }},
      {"saved, expected, after", demo, none},
      {"several findings", make::damaged(), none},
      {"cannot be opened", make::cannot_open(), none},
      {"first page", std::make_shared<Snapshot>(), none},
  };
  Measured measured{**screen, fonts};
  for (const View& view : views) measured.measure(view);
  tell_bar("memory of the views above the model", memory + measured.most_kept, kMemoryBar, "MB",
           made);
  (*screen).reset();
  ImGui::DestroyContext();
  return bars_missed == 0 ? 0 : 1;
}
