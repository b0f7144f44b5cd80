// Measures how soon a cancelled job of the desktop ends, and the longest frame while jobs run: the
// desktop is drawn sixty times a second without a window. tests/bench/desk.sh makes the checkpoints
// and runs it.
//
//   bench_desk_jobs FOLDER      FOLDER has whole, other, moved and moved.json
#include <imgui.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "app/gui/fonts.h"
#include "app/gui/imgui_setup.h"
#include "app/gui/offscreen.h"
#include "app/gui/workbench.h"
#include "tests/bench/bars.h"

using namespace shw;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFrame = std::chrono::milliseconds(16);
constexpr int kMoments = 10;
constexpr double kLongestFrame = 33, kGone = 100;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Desk {
  Desk(Offscreen& at, Fonts& with) : screen(at), fonts(with) {}
  Offscreen& screen;
  Fonts& fonts;
  Workbench bench{nullptr};
  double now = 0, worst_cpu = 0, worst_wall = 0;

  void frame() {
    screen.new_frame();
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    double cpu = thread_milliseconds();
    auto begin = Clock::now();
    ImGui::NewFrame();
    bench.draw(fonts, 1, now += 1.0 / 60, {}, false, {});
    ImGui::Render();
    worst_cpu = std::max(worst_cpu, thread_milliseconds() - cpu);
    worst_wall = std::max(worst_wall, milliseconds(Clock::now() - begin));
  }
  // Draws until no job runs, or for at most `most` seconds; returns the time. A requested job, or
  // one that follows another, begins a moment later.
  double draw_while_busy(double most = 1e9) {
    auto begin = Clock::now(), busy = begin;
    while (milliseconds(Clock::now() - busy) < 150 && milliseconds(Clock::now() - begin) < most) {
      frame();
      std::this_thread::sleep_for(kFrame);
      if (bench.busy()) busy = Clock::now();
    }
    return milliseconds(busy - begin);
  }
  // Milliseconds until the command is done; polls often, to be precise.
  double until_gone(const char* verb) {
    auto begin = Clock::now();
    bench.apply(*parse_command(verb));
    while (bench.busy()) std::this_thread::sleep_for(std::chrono::microseconds(500));
    return milliseconds(Clock::now() - begin);
  }
};

struct Job {
  const char* name;
  std::vector<std::string> before, job;
  std::string made = {};  // its output, deleted after each run
};

void apply(Desk& desk, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    auto command = parse_command(line);
    if (!command) std::printf("%s\n", command.error().message.c_str());
    if (command) desk.bench.apply(std::move(*command));
  }
}

void clear(const std::string& made) {
  if (made.empty()) return;
  std::error_code none;
  std::filesystem::path path(made);
  for (const auto& each : std::filesystem::directory_iterator(path.parent_path(), none)) {
    if (each.path().filename().string().starts_with(path.filename().string()))
      std::filesystem::remove_all(each.path(), none);
  }
}

void measure(Offscreen& screen, Fonts& fonts, const Job& job) {
  std::vector<double> gone;
  double whole = 0, cpu = 0, wall = 0;
  for (int moment = -1; moment < kMoments; ++moment) {
    clear(job.made);
    Desk desk(screen, fonts);
    for (const std::string& line : job.before) {
      apply(desk, {line});
      desk.draw_while_busy();  // nothing can be selected before the checkpoint is open
    }
    desk.worst_cpu = desk.worst_wall = 0;
    apply(desk, job.job);
    if (moment < 0) {
      whole = desk.draw_while_busy();
    } else {
      desk.draw_while_busy(whole * (moment + 0.5) / kMoments);
      if (desk.bench.busy()) gone.push_back(desk.until_gone("cancel"));
    }
    cpu = std::max(cpu, desk.worst_cpu);
    wall = std::max(wall, desk.worst_wall);
    if (moment < 0 && desk.bench.snapshot()->error)
      std::printf("%s: %s\n", job.name, desk.bench.snapshot()->error->message.c_str());
  }
  clear(job.made);
  std::sort(gone.begin(), gone.end());
  char more[96];
  std::snprintf(more, sizeof more, "%.1f ms with what else ran; the job takes %.0f ms", wall,
                whole);
  tell_bar(std::string("longest frame next to: ") + job.name, cpu, kLongestFrame, "ms", more);
  if (gone.empty()) return;
  std::snprintf(more, sizeof more, "median %.0f of %zu", gone[gone.size() / 2], gone.size());
  tell_bar(std::string("cancel, worst: ") + job.name, gone.back(), kGone, "ms", more);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "bench_desk_jobs FOLDER [JOB]\n"), 3;
  std::string folder = argv[1], only = argc > 2 ? argv[2] : "";
  auto screen = Offscreen::create(1280, 720);
  if (!screen) return std::fprintf(stderr, "skipped: %s\n", screen.error().message.c_str()), 77;
  create_imgui(dark_theme(), 1, true);
  if (!(*screen)->attach_imgui()) return 77;
  Fonts fonts = load_fonts(1);
  std::string whole = "open " + folder + "/whole", many = "open " + folder + "/many";
  std::string moved = "open " + folder + "/moved spec " + folder + "/moved.json";
  std::string first = "select model.layers.0.weight", out = folder + "/out";
  const std::vector<Job> jobs = {
      {"load", {}, {many}},
      {"check", {many}, {"check headers"}},
      {"scan every byte", {whole}, {"check data"}},
      {"statistics", {whole, first}, {"tile-values"}},
      {"values", {whole, first}, {"values"}},
      {"compare", {whole}, {"compare data " + folder + "/other"}},
      {"proof", {whole}, {"verify"}},
      {"repair", {moved, "check", "plan"}, {"repair out " + out}, out},
      {"dry run", {moved, "check", "plan"}, {"dry-run"}},
  };
  for (const Job& job : jobs) {
    if (only.empty() || only == job.name) measure(**screen, fonts, job);
  }
  (*screen).reset();
  ImGui::DestroyContext();
  return bars_missed == 0 ? 0 : 1;
}
