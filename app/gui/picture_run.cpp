#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "app/gui/export_view.h"
#include "app/gui/fonts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "app/gui/picture.h"
#include "app/gui/tabs.h"
#include "app/gui/view_state.h"
#include "views/imgui_versions.h"

#include "core/base/parse_text.h"

namespace shw {
namespace {

constexpr int kFrames = 4;  // imgui needs two to lay out, popups a third

// CPU time of this thread: wall time would include other programs of a busy machine.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

class OffscreenHarness {
 public:
  static Result<std::unique_ptr<OffscreenHarness>> create(const GuiOptions& options) {
    SHW_TRY(auto screen, Offscreen::create(options.width, options.height));
    std::unique_ptr<OffscreenHarness> harness(new OffscreenHarness);
    harness->monitor_ = options.scale > 0 ? options.scale : 1;
    harness->screen_ = std::move(screen);
    create_imgui(dark_theme(), harness->monitor_, true);
    harness->has_imgui_ = true;
    SHW_CHECK(harness->screen_->attach_imgui());
    harness->tabs_ =
        std::make_unique<Tabs>([gpus = options.gpus, replays = !options.replay.empty()] {
          auto bench = std::make_unique<Workbench>(nullptr);
          bench->marks().wants_tips = replays;
          bench->set_gpu_detection(gpus);
          return bench;
        });
    // Pictures must look the same everywhere, so user settings are used only if requested.
    harness->tabs_->autosave_settings_to(options.settings);
    if (options.theme) harness->bench().desk().panel_state.settings.theme = *options.theme;
    return harness;
  }
  ~OffscreenHarness() {
    tabs_.reset();
    screen_.reset();
    if (has_imgui_) ImGui::DestroyContext();
  }

  Workbench& bench() { return tabs_->shown(); }
  Tabs& tabs() { return *tabs_; }

  // Seconds of CPU from NewFrame to Render.
  double frame(std::span<const KeyPress> keys = {}) {
    const verbs::UiSettings& settings = bench().desk().panel_state.settings;
    change_style({settings.theme, total_scale(monitor_, settings.scale)}, look_, fonts_);
    screen_->new_frame();
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    double begin = thread_seconds();
    ImGui::NewFrame();
    exported_.begin(bench());
    tabs_->draw(fonts_, look_.scale, now_ += 1.0 / 60, keys, true);
    ImGui::Render();
    const double taken = thread_seconds() - begin;
    exported_.finish(bench(), [&] {
      screen_->render();
      return screen_->read();
    });
    return taken;
  }
  void settle() {
    for (int i = 0; i < kFrames; ++i) {
      tabs_->settle();
      frame();
    }
    tabs_->settle();
    frame();
  }
  Status save_screenshot(const std::string& path) {
    settle();
    screen_->render();
    return write_png(path, screen_->read());
  }
  // "map/saved 0.5 0.75": moves the mouse to a named item, at these fractions of its width and
  // height.
  bool point(const std::string& line) {
    std::size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (first == line.npos || second == line.npos) return false;
    auto found = bench().marks().items.find(line.substr(0, first));
    auto x = parse_number<float>(line.substr(first + 1, second - first - 1));
    auto y = parse_number<float>(line.substr(second + 1));
    if (found == bench().marks().items.end() || !x || !y) return false;
    ImVec4 box = found->second;
    move_mouse({box.x + (box.z - box.x) * *x, box.y + (box.w - box.y) * *y});
    return true;
  }
  bool click(const std::string& name) {
    auto found = bench().marks().items.find(name);
    if (found == bench().marks().items.end()) return false;
    ImVec4 box = found->second;
    move_mouse({(box.x + box.z) / 2, (box.y + box.w) / 2});
    frame();
    press_mouse(true);
    frame();
    press_mouse(false);
    frame();
    return true;
  }

 private:
  OffscreenHarness() = default;
  std::unique_ptr<Offscreen> screen_;
  std::unique_ptr<Tabs> tabs_;
  Fonts fonts_;
  Look look_;
  ViewExport exported_;
  float monitor_ = 1;
  double now_ = 0;
  bool has_imgui_ = false;
};

Status usage(const std::string& line) {
  return fail(ErrorKind::kUsage, "cannot run the replay line \"" + line + "\"");
}

Status replay_slice_line(OffscreenHarness& harness, const std::string& line) {
  std::size_t space = line.find(' ', 6);
  auto dim = parse_number<std::size_t>(line.substr(6, space - 6));
  auto at = space == line.npos ? std::nullopt : parse_number<std::int64_t>(line.substr(space + 1));
  Extents& position = harness.bench().desk().map.slice.at;
  if (!dim || !at || *dim >= position.size() || *at < 0) return usage(line);
  position[*dim] = *at;
  return {};
}

GuiOptions opened(std::string checkpoint) {
  GuiOptions options;
  options.checkpoint = std::move(checkpoint);
  return options;
}

Status replay_line(OffscreenHarness& harness, const std::string& line) {
  UiState& desk = harness.bench().desk();
  auto rest = [&](std::string_view word) { return line.substr(word.size()); };
  if (line == "wait") return {};
  if (line == "open-plan") {
    desk.plan_open = true;
  } else if (line == "explain") {
    desk.explain_open = true;
  } else if (line.starts_with("recent ")) {
    harness.bench().set_recent_places_file(rest("recent "));
  } else if (line == "mesh-panel") {
    desk.mesh_open = true;
  } else if (line.starts_with("cache ")) {
    desk.panel_state.cache_folder = rest("cache ");
  } else if (line == "palette") {
    desk.palette_open = desk.palette_wanted = true;
  } else if (line.starts_with("screenshot ")) {
    return harness.save_screenshot(rest("screenshot "));
  } else if (line.starts_with("hover tile ")) {
    auto chunk = parse_number<std::uint32_t>(rest("hover tile "));
    if (!chunk) return usage(line);
    desk.map.pinned = ChunkId{*chunk};
  } else if (line.starts_with("zoom ")) {
    auto factor = parse_number<double>(rest("zoom "));
    if (!factor || !(*factor >= 1 && *factor <= 1e7)) return usage(line);
    desk.map.zoom = *factor;
  } else if (line.starts_with("slice ")) {
    return replay_slice_line(harness, line);
  } else if (line.starts_with("key ")) {
    KeyPress key = parse_key(rest("key "));
    if (key.key == Key::kNone) return usage(line);
    harness.frame({&key, 1});
  } else if (line.starts_with("click ")) {
    if (!harness.click(rest("click "))) return usage(line);
  } else if (line.starts_with("point ")) {
    if (!harness.point(rest("point "))) return usage(line);
  } else if (line.starts_with("where ")) {
    // For tests with a real mouse: prints the centre of a named item.
    auto found = harness.bench().marks().items.find(rest("where "));
    if (found == harness.bench().marks().items.end()) return usage(line);
    ImVec4 box = found->second;
    std::printf("%.0f %.0f\n", static_cast<double>((box.x + box.z) / 2),
                static_cast<double>((box.y + box.w) / 2));
  } else if (line == "tips") {
    // For the same tests: every control with the place of its middle and its tip.
    for (const auto& [name, tip] : harness.bench().marks().tips) {
      const auto found = harness.bench().marks().items.find(name);
      if (found == harness.bench().marks().items.end()) continue;
      const ImVec4 box = found->second;
      std::printf("%.0f %.0f %s\t%s\n", static_cast<double>((box.x + box.z) / 2),
                  static_cast<double>((box.y + box.w) / 2), name.c_str(),
                  tip.substr(0, tip.find('\n')).c_str());
    }
  } else if (line == "new-tab" || line.starts_with("new-tab ")) {
    harness.tabs().add_empty();
    if (line.size() > 8) harness.bench().open(opened(line.substr(8)));
  } else if (line.starts_with("tab ") || line.starts_with("close-tab ")) {
    const bool closes = line.starts_with("close");
    auto tab = parse_number<std::size_t>(rest(closes ? "close-tab " : "tab "));
    if (!tab || *tab >= harness.tabs().count()) return usage(line);
    closes ? harness.tabs().close(*tab) : harness.tabs().show(*tab);
  } else if (line.starts_with("drop ")) {
    harness.bench().drop(rest("drop "));
  } else if (line.starts_with("view ")) {
    if (!restore_view_from_line(line, harness.bench().snapshot()->tensor, desk)) return usage(line);
  } else if (line.starts_with("type ")) {
    ImGui::GetIO().AddInputCharactersUTF8(rest("type ").c_str());
  } else {
    SHW_TRY(auto command, parse_command(line));
    if (std::holds_alternative<FilterCommand>(command))
      desk.filter = std::get<FilterCommand>(command).text;
    harness.bench().apply(std::move(command));
  }
  return {};
}

Status play(OffscreenHarness& harness, const std::string& path) {
  std::ifstream script(path);
  if (!script) return fail(ErrorKind::kIo, "cannot read the replay script", {path});
  std::string line;
  for (int at = 1; std::getline(script, line); ++at) {
    if (line.empty() || line[0] == '#') continue;
    if (auto played = replay_line(harness, line); !played) {
      Error error = played.error();
      if (error.place.file.empty()) error.place.file = fmt::format("{}:{}", path, at);
      return tl::unexpected<Error>(std::move(error));
    }
    harness.settle();
  }
  return {};
}

void measure(OffscreenHarness& harness) {
  std::vector<double> times;
  for (int i = 0; i < 300; ++i) times.push_back(harness.frame() * 1e3);
  std::sort(times.begin(), times.end());
  std::fprintf(stderr,
               "frame build on the CPU: median %.2f ms, p95 %.2f ms, worst %.2f ms of %zu\n",
               times[times.size() / 2], times[times.size() * 95 / 100], times.back(), times.size());
}

}  // namespace

// Limit of a picture: 7680x4320, the largest common screen. Larger ones take minutes on the CPU.
constexpr int kMaxPixelsAcross = 7680;
constexpr std::int64_t kMaxPixels = std::int64_t{7680} * 4320;

Status parse_size(const std::string& text, int* width, int* height) {
  std::size_t cross = text.find('x');
  auto w = parse_number<int>(text.substr(0, cross));
  auto h = parse_number<int>(cross == text.npos ? "" : text.substr(cross + 1));
  if (!w || !h || *w < 320 || *h < 240 || *w > kMaxPixelsAcross || *h > kMaxPixelsAcross ||
      std::int64_t{*w} * *h > kMaxPixels)
    return fail(
        ErrorKind::kUsage,
        "--size is WIDTHxHEIGHT, from 320x240 to 7680x4320 or 4320x7680; it was \"" + text + "\"");
  *width = *w;
  *height = *h;
  return {};
}

Status render_pictures(const GuiOptions& options) {
  SHW_TRY(auto harness, OffscreenHarness::create(options));
  if (!options.record.empty()) SHW_CHECK(harness->tabs().record_in(options.record));
  harness->tabs().open_all(options);
  harness->settle();
  if (!options.replay.empty()) SHW_CHECK(play(*harness, options.replay));
  if (!options.screenshot.empty()) SHW_CHECK(harness->save_screenshot(options.screenshot));
  if (options.frame_times) measure(*harness);
  auto snapshot = harness->bench().snapshot();
  if (snapshot->checkpoint == nullptr && snapshot->error)
    // The picture shows the error, and the exit code reports it.
    return tl::unexpected<Error>(*snapshot->error);
  return {};
}

}  // namespace shw
