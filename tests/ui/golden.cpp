// Pictures of every view, compared with kept ones. They are drawn without X and with imgui's
// built-in font, so that the machine's fonts do not matter, and compared in cells of 16 pixels (32
// for larger screens), so that the Mesa version does not matter.
//
//   golden check KEPT MADE     1 if a view has changed: MADE/VIEW.png has both
//   golden make KEPT [VIEW]    after an intended change: all, or those whose name begins so
#include <imgui.h>
#include <stb_image.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "app/gui/gl_layouts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "make/snapshots.h"
#include "views/desk.h"

using namespace shw;

namespace {

struct Screen {
  int width, height, cell;
  float scale;
};
constexpr std::array<Screen, 4> kScreens{
    {{960, 540, 16, 1}, {1280, 720, 16, 1}, {1920, 1080, 32, 2}, {2560, 1440, 32, 1}}};
constexpr int kFrames = 5;  // imgui needs two to lay out, panels a third
// A cell with one letter more or less differs by 20; antialiasing of another Mesa version by 2.
constexpr int kTolerance = 8;
constexpr int kCellsAllowed = 2;  // of some thousands
constexpr int kEnlarged = 8;      // in the picture of a failed test

struct View {
  std::string name;
  std::shared_ptr<const Snapshot> snapshot;
  void (*open)(UiState&) = [](UiState&) {};
  JobState job = {};
  std::vector<JobState> concurrent_jobs = {};
};

std::shared_ptr<Snapshot> compared() {
  auto snapshot = make::healthy();
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = snapshot->checkpoint;
  both->difference.verdict = EqualityVerdict::kDifferent;
  for (std::uint32_t t = 0; t < 12; ++t) {
    TensorDifference one;
    one.fqn = snapshot->checkpoint->fqn(TensorId{t});
    one.kind = t % 3 == 0 ? DifferenceKind::kReshaped : DifferenceKind::kValues;
    one.a = one.b = TensorSide{Dtype::kFloat32, {4, 4}, 1};
    both->difference.tensors.push_back(one);
  }
  snapshot->compared = both;
  snapshot->compared_with = "/runs/8/step_9000";
  snapshot->difference = 1;
  return snapshot;
}

std::shared_ptr<Snapshot> certified() {
  auto snapshot = make::demo_repaired(true);
  auto list = std::make_shared<verbs::CertificateList>();
  list->path = "/runs/7/step_9000-repaired/certificate.json";
  list->sealed = list->lossless = true;
  snapshot->certificate = list;
  return snapshot;
}

std::shared_ptr<Snapshot> opened_before() {
  auto snapshot = std::make_shared<Snapshot>();
  verbs::RecentPlaces places;
  places.push_back({"/runs/7/step_9000", "", "", "", "findings", "1 finding, 1,142 tensors"});
  places.push_back({"/runs/7/step_8000", "", "", "", "clean", "0 findings, 1,142 tensors"});
  snapshot->recent = std::make_shared<const verbs::RecentPlaces>(std::move(places));
  return snapshot;
}

JobState job_of(const char* verb, const char* title, Phase phase, std::uint64_t done) {
  JobState job{true, title, phase, done, 10'000'000'000, true, 3};
  job.phase_seconds = 3;
  job.verb = verb;
  return job;
}

std::vector<View> all_views() {
  std::vector<View> views;
  for (const make::State& state : make::all_states())
    views.push_back({state.name, state.snapshot, [](UiState&) {}, state.job, {}});
  auto demo = make::demo_planned();
  auto add = [&](const char* name, std::shared_ptr<const Snapshot> snapshot,
                 void (*open)(UiState&)) {
    views.push_back({name, std::move(snapshot), open});
  };
  add("plan", demo, [](UiState& d) { d.plan_open = true; });
  add("plan-lossy", make::lossy(), [](UiState& d) { d.plan_open = true; });
  add("explain", demo, [](UiState& d) { d.explain_open = true; });
  add("settings", demo, [](UiState& d) { d.panel_state.settings_open = true; });
  add("expect", demo, [](UiState& d) { d.panel_state.expect_open = true; });
  add("write-as", demo, [](UiState& d) { d.write.open = true; });
  add("error-meaning", demo, [](UiState& d) { d.panel_state.errors_open = true; });
  add("palette", demo, [](UiState& d) { d.palette_open = true; });
  add("mesh", demo, [](UiState& d) { d.mesh_open = true; });
  // A tensor that is selected after the overview was opened would close it.
  auto whole = std::make_shared<Snapshot>(*demo);
  whole->tensor.reset();
  add("overview", whole, [](UiState& d) { d.summary_open = true; });
  add("table", make::damaged(), [](UiState& d) { d.table.open = true; });
  add("tour", demo, [](UiState& d) { d.panel_state.tour_step = 1; });
  add("zoomed", demo, [](UiState& d) { d.map.zoom = 3; });
  add("by-finding", demo, [](UiState& d) { d.colour_by = ColourBy::kFinding; });
  add("by-file", demo, [](UiState& d) { d.colour_by = ColourBy::kFile; });
  add("bytes", make::with_bytes(make::demo_planned()), [](UiState& d) { d.bytes.open = true; });
  add("values", make::with_values(make::demo_planned()), [](UiState& d) { d.values.open = true; });
  add("compare", compared(), [](UiState& d) { d.compare_open = true; });
  add("certificate", certified(), [](UiState& d) { d.certificate_open = true; });
  add("opened-before", opened_before(), [](UiState&) {});
  View busy{"several-jobs", demo};
  busy.job = job_of("repair", "Repairing", Phase::kCopying, 4'000'000'000);
  busy.concurrent_jobs = {
      job_of("check", "Checking every byte", Phase::kReadingBytes, 6'000'000'000),
      job_of("compare", "Comparing", Phase::kReadingBytes, 1'000'000'000)};
  busy.concurrent_jobs[1].paused = true;
  views.push_back(busy);
  return views;
}

// Mean of each cell; cells cut by the edge are omitted.
Image in_cells(const Image& image, int cell) {
  Image cells{image.width / cell, image.height / cell, {}};
  for (int y = 0; y < cells.height; ++y) {
    for (int x = 0; x < cells.width; ++x) {
      std::array<std::uint32_t, 3> sum{};
      for (int row = y * cell; row < (y + 1) * cell; ++row) {
        for (int column = x * cell; column < (x + 1) * cell; ++column) {
          Rgba pixel = image.pixels[static_cast<std::size_t>(row * image.width + column)];
          for (std::size_t c = 0; c < 3; ++c) sum[c] += (pixel >> (8 * c)) & 255;
        }
      }
      auto count = static_cast<std::uint32_t>(cell * cell);
      Rgba mean = 0xff000000u;
      for (std::size_t c = 0; c < 3; ++c) mean |= (sum[c] + count / 2) / count << (8 * c);
      cells.pixels.push_back(mean);
    }
  }
  return cells;
}

// Puts the screens of a view below each other.
void put_below(Image& all, const Image& more) {
  Image both{std::max(all.width, more.width), all.height + more.height, {}};
  both.pixels.assign(static_cast<std::size_t>(both.width * both.height), 0xff000000u);
  int y = 0;
  for (const Image* each : std::array<const Image*, 2>{&all, &more}) {
    for (int row = 0; row < each->height; ++row)
      std::copy_n(each->pixels.begin() + row * each->width, each->width,
                  both.pixels.begin() + (y + row) * both.width);
    y += each->height;
  }
  all = std::move(both);
}

Image read_png(const std::string& path) {
  Image image;
  int channels = 0;
  unsigned char* read = stbi_load(path.c_str(), &image.width, &image.height, &channels, 4);
  if (read == nullptr) return {};
  for (int i = 0; i < image.width * image.height; ++i) {
    const unsigned char* p = read + 4 * i;
    image.pixels.push_back(static_cast<Rgba>(p[0] | p[1] << 8 | p[2] << 16) | 0xff000000u);
  }
  stbi_image_free(read);
  return image;
}

int difference(Rgba a, Rgba b) {
  int most = 0;
  for (int shift : {0, 8, 16})
    most = std::max(
        most, std::abs(static_cast<int>(a >> shift & 255) - static_cast<int>(b >> shift & 255)));
  return most;
}

// The kept picture, the current one, and their differences, from left to right.
Image side_by_side(const Image& kept, const Image& now) {
  int width = std::max(kept.width, now.width), height = std::max(kept.height, now.height);
  Image all{width * 3 * kEnlarged, height * kEnlarged, {}};
  auto at = [](const Image& image, int x, int y) {
    bool inside = x < image.width && y < image.height;
    return inside ? image.pixels[static_cast<std::size_t>(y * image.width + x)] : 0xffff00ffu;
  };
  for (int y = 0; y < all.height; ++y) {
    for (int x = 0; x < all.width; ++x) {
      int column = x / kEnlarged % width, row = y / kEnlarged;
      Rgba a = at(kept, column, row), b = at(now, column, row);
      int part = x / kEnlarged / width;
      bool differs = difference(a, b) > kTolerance;
      all.pixels.push_back(part == 0 ? a : part == 1 ? b : differs ? 0xff3030ffu : 0xff202020u);
    }
  }
  return all;
}

// Letters that are equal on all machines, recreated for another scale.
Fonts own_letters(float scale) {
  ImFontConfig config;
  config.SizePixels = 13 * scale;
  ImFont* font = ImGui::GetIO().Fonts->AddFontDefault(&config);
  return {font, font, font, font, font, font, font, font};
}

Image draw(Offscreen& screen, const Fonts& fonts, const View& view, verbs::UiTheme theme,
           float scale) {
  GlLayouts layouts(nullptr);
  auto digest = make_digest(view.snapshot);
  UiState desk;
  desk.panel_state.settings.theme = theme;
  desk.filter = view.snapshot->filter;
  view.open(desk);
  for (int i = 0; i < kFrames; ++i) {
    screen.new_frame();
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    ImGui::NewFrame();
    std::vector<Command> commands;
    Frame frame{*digest, *view.snapshot, view.job, theme_of(theme), fonts, layouts, commands, {}};
    frame.scale = scale;
    frame.concurrent_jobs = view.concurrent_jobs;
    frame.stable = true;
    draw_ui(frame, desk);
    ImGui::Render();
    if (i + 1 == kFrames) screen.render();
    layouts.wait();
  }
  return screen.read();
}

using Pictures = std::map<std::string, Image>;

bool draw_all(Pictures& pictures, const std::string& only) {
  auto views = all_views();
  std::erase_if(views, [&](const View& view) { return !view.name.starts_with(only); });
  for (const Screen& at : kScreens) {
    auto screen = Offscreen::create(at.width, at.height);
    if (!screen)
      return std::fprintf(stderr, "skipped: %s\n", screen.error().message.c_str()), false;
    create_imgui(dark_theme(), at.scale, true);
    if (!(*screen)->attach_imgui()) return false;
    Fonts fonts = own_letters(at.scale);
    for (verbs::UiTheme theme : {verbs::UiTheme::kDark, verbs::UiTheme::kLight}) {
      apply_style(theme_of(theme), at.scale);
      for (const View& view : views) {
        std::string name = view.name + "-" + std::string(verbs::name(theme));
        put_below(pictures[name], in_cells(draw(**screen, fonts, view, theme, at.scale), at.cell));
      }
    }
    screen->reset();
    ImGui::DestroyContext();
  }
  return true;
}

int check(const Pictures& pictures, const std::string& kept_in, const std::string& made_in) {
  std::filesystem::create_directories(made_in);
  int changed = 0;
  for (const auto& [name, now] : pictures) {
    Image kept = read_png(kept_in + "/" + name + ".png");
    int cells = 0, most = 0;
    bool same_size = kept.width == now.width && kept.height == now.height;
    for (std::size_t i = 0; same_size && i < now.pixels.size(); ++i) {
      int differs = difference(kept.pixels[i], now.pixels[i]);
      most = std::max(most, differs);
      cells += differs > kTolerance ? 1 : 0;
    }
    if (same_size && cells <= kCellsAllowed) continue;
    ++changed;
    std::string path = made_in + "/" + name + ".png";
    if (kept.pixels.empty())
      std::printf("%s: nothing was kept of it\n", name.c_str());
    else
      std::printf("%s: %d cells differ, by up to %d of 255: kept, now and where in %s\n",
                  name.c_str(), cells, most, path.c_str());
    (void)write_png(path, side_by_side(kept, now));
  }
  for (const auto& entry : std::filesystem::directory_iterator(kept_in)) {
    std::string name = entry.path().stem().string();
    if (pictures.contains(name)) continue;
    ++changed;
    std::printf("%s: kept, and drawn by nobody\n", name.c_str());
  }
  if (changed > 0)
    std::printf("%d of %zu have changed. If that is meant: golden make %s\n", changed,
                pictures.size(), kept_in.c_str());
  return changed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string verb = argc > 1 ? argv[1] : "";
  bool checks = verb == "check" && argc == 4, makes = verb == "make" && (argc == 3 || argc == 4);
  if (!checks && !makes)
    return std::fprintf(stderr, "golden check KEPT MADE | golden make KEPT [VIEW]\n"), 3;
  Pictures pictures;
  if (!draw_all(pictures, argc == 4 && makes ? argv[3] : "")) return 77;
  if (checks) return check(pictures, argv[2], argv[3]);
  std::filesystem::create_directories(argv[2]);
  for (const auto& [name, picture] : pictures) {
    if (!write_png(std::string(argv[2]) + "/" + name + ".png", picture)) return 4;
  }
  std::printf("%zu pictures\n", pictures.size());
  return 0;
}
