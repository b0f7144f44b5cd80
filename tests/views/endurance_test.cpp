// Random input to a real session: commands, keys, clicks. SHARDWRIGHT_ENDURANCE sets the number of
// steps: few here, 100,000 before a release, with ASan.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

class Hands {
 public:
  Hands(Session& session, Driver& driver, const TemporaryFolder& folder, unsigned seed)
      : session_(session), driver_(driver), folder_(folder), random_(seed) {}

  void step() {
    if (pick(8) == 0) session_.apply(any_command());
    if (pick(6) == 0) session_.wait();
    driver_.show(std::make_shared<Snapshot>(*session_.snapshot()), session_.job());
    move();
    std::vector<KeyPress> keys;
    if (pick(3) == 0)
      keys.push_back({static_cast<Key>(pick(static_cast<unsigned>(Key::kCount))), pick(3) == 0,
                      pick(4) == 0, pick(6) == 0});
    if (pick(12) == 0) ImGui::GetIO().AddInputCharactersUTF8("é:*[9/~");
    auto commands = driver_.frame(keys);
    driver_.desk.quit = false;
    driver_.desk.out = folder_ / "out" + std::to_string(pick(3));
    driver_.desk.save.path = pick(2) == 0 ? "" : folder_ / "reports";
    // A file instead of a folder, so that no demo is made: checking its ten gigabytes takes too
    // long.
    driver_.desk.panel_state.cache_folder = folder_ / "b/__0_0.distcp";
    std::vector<Command> safe;
    for (Command& command : commands) {
      auto again = parse_command(to_text(command));
      if (again) CHECK(to_text(*again) == to_text(command));
      // Whatever is typed, nothing may be written to other places.
      if (auto* repair = std::get_if<RepairCommand>(&command); repair && !repair->options.in_place)
        repair->options.out = driver_.desk.out;
      safe.push_back(std::move(command));
    }
    session_.apply(std::move(safe));
  }

 private:
  unsigned pick(unsigned of) { return static_cast<unsigned>(random_()) % of; }

  // Mostly moves the mouse onto a named item.
  void move() {
    const auto& items = driver_.marks.items;
    ImVec2 to{static_cast<float>(pick(1400)) - 50, static_cast<float>(pick(800)) - 30};
    if (!items.empty() && pick(3) > 0) {
      auto item =
          std::next(items.begin(), static_cast<long>(pick(static_cast<unsigned>(items.size()))));
      to = {(item->second.x + item->second.z) / 2, (item->second.y + item->second.w) / 2};
    }
    if (pick(2) == 0) move_mouse(to);
    press_mouse(pick(2) == 0);
    turn_wheel(pick(9) == 0 ? static_cast<float>(pick(7)) - 3 : 0);
  }

  Command any_command() {
    const std::vector<std::string> lines{
        "open " + (folder_ / "a"), "open " + (folder_ / "b"), "open " + (folder_ / "nothing"),
        "open " + folder_.path(), "check", "check data", "check metadata", "plan", "plan fill zero",
        "repair out " + (folder_ / "made"), "verify", "undo", "cancel", "mesh", "mesh dp=4",
        "tile " + std::to_string(pick(40)), "tile", "finding " + std::to_string(pick(4)),
        "filter w", "filter", "filter finding:*", "sort bytes desc", "sort name", "bytes",
        "bytes finding", "bytes next", "bytes previous", "bytes off",
        "bytes at " + std::to_string(pick(100'000)), "bytes file __0_0.distcp at 0",
        "bytes file ../x at 3", "values", "values off", "values [0:4, 0:4]", "values [3]",
        "values [1:2, 0:9, 4] transposed", "compare " + (folder_ / "b"),
        "difference " + std::to_string(pick(4)), "tile-values", "tile-values off",
        "tile-values of no.such.tensor", "pause", "pause", "continue", "go back", "go forward",
        "browse " + folder_.path() + "/", "browse ~/", "browse /no/such",
        "explain-error Size mismatch between saved "
        "torch.Size([64]) and current: torch.Size([8])",
        "explain-error \\\\n\\n what?", "report", "report " + (folder_ / "reports"),
        "report " + (folder_ / "a/.metadata"),
        // Refused, since it is not the demo's folder.
        "demo " + (folder_ / "a/.metadata")};
    if (pick(4) == 0) {
      auto snapshot = session_.snapshot();
      if (snapshot->checkpoint != nullptr && snapshot->checkpoint->tensor_count() > 0)
        return SelectTensorCommand{std::string(
            snapshot->checkpoint->fqn(TensorId{pick(snapshot->checkpoint->tensor_count())}))};
    }
    auto command = parse_command(lines[pick(static_cast<unsigned>(lines.size()))]);
    REQUIRE(command.has_value());
    return *command;
  }

  Session& session_;
  Driver& driver_;
  const TemporaryFolder& folder_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("random hands on a real checkpoint never upset session or desktop") {
  const char* said = std::getenv("SHARDWRIGHT_ENDURANCE");
  int steps = said != nullptr ? std::max(1, std::atoi(said)) : 400;
  const std::string data = std::string(SHW_TEST_DATA) + "/torch-2.14/";
  TemporaryFolder folder;
  std::filesystem::copy(data + "s1_placement_not_transposed/ckpt", folder / "a");
  std::filesystem::copy(data + "healthy_fsdp/ckpt", folder / "b");
  std::filesystem::resize_file(folder / "b/__1_0.distcp", 3000);
  Session session;
  session.set_recent_places_file(folder / "recent.json");
  session.apply(
      {OpenCommand{folder / "a", data + "s1_placement_not_transposed/spec.json"}, CheckCommand{}});
  session.wait();
  Driver driver(std::make_shared<Snapshot>(*session.snapshot()), {1280, 720});
  Hands hands(session, driver, folder, 20261122);
  for (int i = 0; i < steps; ++i) hands.step();
  session.apply(CancelCommand{});
  session.wait();
  CHECK(session.snapshot() != nullptr);
}
