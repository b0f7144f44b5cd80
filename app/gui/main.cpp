// shardwright-gui: the desktop, or a picture of it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "app/gui/fonts.h"
#include "app/gui/picture.h"
#include "app/gui/window.h"
#include "core/base/threads.h"
#include "gpu/cuda_executor.h"

namespace {

int exit_code(shw::ErrorKind kind) {
  return kind == shw::ErrorKind::kUsage ? 3 : kind == shw::ErrorKind::kIo ? 4 : 2;
}

int report(const shw::Error& error) {
  std::string where = error.place.file;
  if (error.place.offset) where += fmt::format(": at byte {}", *error.place.offset);
  std::fprintf(stderr, "shardwright-gui: %s%s%s\n", where.c_str(), where.empty() ? "" : ": ",
               error.message.c_str());
  if (!error.advice.empty()) std::fprintf(stderr, "%s\n", error.advice.c_str());
  return exit_code(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Opens a sharded checkpoint, draws which rank wrote what, repairs it with proof."};
  shw::GuiOptions options;
  std::string size = "1440x900";
  bool fonts = false;
  std::vector<std::string> checkpoints;
  app.add_option("checkpoint", checkpoints,
                 "checkpoint directories, or their .metadata files; each opens in a tab");
  app.add_option("--spec", options.spec, "what the model expects (JSON)");
  app.add_option("--against", options.against, "another checkpoint of the same model");
  app.add_option("--mesh", options.mesh, "the device mesh of the ranks: dp=4,tp=2");
  app.add_option("--screenshot", options.screenshot, "draw into this PNG, without a display");
  app.add_option("--size", size, "window or picture size: WIDTHxHEIGHT");
  app.add_option("--scale", options.scale, "1 to 4; the monitor's by default")
      ->check(CLI::Range(0.5, 4.0));
  std::string theme;
  app.add_option("--theme", theme, "dark, light or contrast; as the settings say by default")
      ->check(CLI::IsMember({"dark", "light", "contrast"}));
  app.add_option("--settings", options.settings, "settings file for --screenshot; default: none");
  app.add_option("--replay", options.replay,
                 "a script of commands, one per line, without any display");
  app.add_option("--record", options.record, "write every command into this file, for --replay");
  app.add_flag("--frame-times", options.frame_times, "measure 300 frames, without any display");
  app.add_flag("--fonts", fonts, "print which fonts are used");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 3;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a lost connection of ssh is an error of its job
  if (fonts) return std::printf("%s", shw::font_report().c_str()), 0;
  options.theme = shw::verbs::ui_theme(theme);
  if (auto parsed = shw::parse_size(size, &options.width, &options.height); !parsed)
    return report(parsed.error());
  if (!checkpoints.empty()) {
    options.checkpoint = checkpoints.front();
    options.more.assign(checkpoints.begin() + 1, checkpoints.end());
  }
  options.gpus = shw::cuda_gpus;
  constexpr std::size_t kThreads =
      7;  // of the session, the digest, the layouts, the settings and the watch
  if (shw::count_startable_threads(kThreads) < kThreads)
    return report({shw::ErrorKind::kIo,
                   "the system refuses to start more threads",
                   {},
                   "Raise the process limit (`ulimit -u`, or that of the container)."});
  bool picture = !options.screenshot.empty() || !options.replay.empty() || options.frame_times;
  auto done = picture ? shw::render_pictures(options) : shw::run_window(options);
  return done ? 0 : report(done.error());
}
