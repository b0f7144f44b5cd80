// The flat table of tensors: sorting by its header, column widths, selecting rows.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <map>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"
#include "views/panels/panels.h"

using namespace shw;

namespace {

// The demo with all its tensors.
std::shared_ptr<Snapshot> unfiltered() {
  auto snapshot = make::demo();
  snapshot->order = nullptr;
  snapshot->filter.clear();
  return snapshot;
}

struct TableDriver : Driver {
  explicit TableDriver(std::shared_ptr<const Snapshot> snapshot = unfiltered(),
                       ImVec2 size = {1440, 900})
      : Driver(std::move(snapshot), size) {
    frame();
    frame({{Key::kT, true, false, false}});
    frame();
    frame();
  }
  float width(int column) const {
    return middle("table/border/" + std::to_string(column + 1)).x -
           middle("table/border/" + std::to_string(column)).x;
  }
};

const SortCommand* sort_in(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* sort = std::get_if<SortCommand>(&command)) return sort;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the table takes the place of the map by its key and its chip, and gives it back") {
  TableDriver driver;
  CHECK(driver.desk.table.open);
  // The selected tensor is visible.
  CHECK(driver.marks.items.contains(fmt::format("table/row/{}", index_of(*unfiltered()->tensor))));
  CHECK(driver.marks.items.contains("filter"));  // its rows are filtered by the list's filter
  CHECK_FALSE(driver.marks.items.contains("map/saved"));
  driver.frame({{Key::kEscape}});
  driver.frame();
  CHECK(driver.marks.items.contains("map/saved"));
  driver.click("list/table");
  CHECK(driver.desk.table.open);
  driver.click("table/close");
  CHECK_FALSE(driver.desk.table.open);
}

TEST_CASE("a click on a head sorts by it, another turns it round, a third ends it") {
  TableDriver driver;
  for (auto [head, key] : {std::pair{"table/Bytes", SortKey::kBytes},
                           {"table/Tiles", SortKey::kChunks},
                           {"table/Shape", SortKey::kShape},
                           {"table/signs", SortKey::kFindings}}) {
    CAPTURE(head);
    auto commands = driver.click(head);
    REQUIRE(sort_in(commands) != nullptr);
    CHECK(sort_in(commands)->key == key);
    CHECK(sort_in(commands)->descending);
  }
  for (auto [head, key] :
       {std::pair{"table/Dtype", SortKey::kDtype}, {"table/Tensor", SortKey::kName}}) {
    CAPTURE(head);
    auto commands = driver.click(head);
    CHECK(sort_in(commands)->key == key);
    CHECK_FALSE(sort_in(commands)->descending);
    CHECK(sort_in(driver.click(head))->descending);
    CHECK(sort_in(driver.click(head))->key == SortKey::kRecorded);
  }
}

TEST_CASE("a border is dragged, pressed twice to fit, and remembered") {
  TableDriver driver;
  float standard = driver.width(0);
  ImVec2 at = driver.middle("table/border/0");
  driver.drag(at, {at.x - 60, at.y});
  CHECK(driver.width(0) == doctest::Approx(standard + 60).epsilon(0.03));
  CHECK(driver.desk.table.widths[0] > 0);
  verbs::UiSettings kept = settings_of(driver.desk);
  CHECK(kept.columns == driver.desk.table.widths);

  // The column is neither closed nor drawn over the names.
  at = driver.middle("table/border/1");
  driver.drag(at, {at.x + 900, at.y});
  CHECK(driver.width(1) >= 30);
  move_mouse(driver.middle("table/border/0"));
  for (bool down : {true, false, true, false}) {
    press_mouse(down);
    driver.frame();
  }
  driver.frame();
  CHECK(driver.width(0) < standard + 60);
  CHECK(driver.width(0) >= 40);

  auto read = verbs::parse_ui_settings(verbs::to_text(settings_of(driver.desk)));
  REQUIRE(read.has_value());
  UiState other;
  apply_settings(other, *read);
  CHECK(other.table.widths == driver.desk.table.widths);
}

TEST_CASE("rows are chosen by a click and by keys in the order of the list") {
  TableDriver driver;
  auto demo = unfiltered();
  const Checkpoint& checkpoint = *demo->checkpoint;
  auto next = static_cast<std::uint32_t>(index_of(*demo->tensor) + 1);
  auto commands = driver.click(fmt::format("table/row/{}", next));
  REQUIRE(commands.size() == 1);
  CHECK(std::get<SelectTensorCommand>(commands[0]).fqn == checkpoint.fqn(TensorId{next}));

  auto sorted = std::make_shared<Snapshot>(*demo);
  sorted->order =
      std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{5, 3, 9});
  sorted->tensor = TensorId{3};
  driver.show(sorted);
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("table/row/3"));
  commands = driver.frame({{Key::kDown}});
  REQUIRE(commands.size() == 1);
  CHECK(std::get<SelectTensorCommand>(commands[0]).fqn == checkpoint.fqn(TensorId{9}));
  commands = driver.frame({{Key::kHome}});
  REQUIRE(commands.size() == 1);
  CHECK(std::get<SelectTensorCommand>(commands[0]).fqn == checkpoint.fqn(TensorId{5}));
}

TEST_CASE("of very many tensors the table draws what is seen, and goes to what is selected") {
  TableDriver driver(make::many_tensors(60'000));
  CHECK(driver.marks.items.contains("table/row/30000"));
  int rows = 0;
  for (const auto& [name, box] : driver.marks.items) rows += name.starts_with("table/row/") ? 1 : 0;
  CHECK(rows < 60);
}

TEST_CASE("the table keeps its texts whole at every size, and leaves columns out before names") {
  for (auto [size, scale] : {std::pair{ImVec2{960, 540}, 1.0f},
                             {ImVec2{1280, 720}, 1.5f},
                             {ImVec2{1920, 1080}, 2.0f},
                             {ImVec2{1280, 720}, 3.0f}}) {
    CAPTURE(size.x);
    CAPTURE(scale);
    Driver driver(make::damaged(), size, scale);
    driver.desk.table.open = true;
    for (bool wide : {false, true}) {
      if (wide) driver.desk.table.widths = {400, 300, 200, 100};
      for (int i = 0; i < 3; ++i) driver.frame();
      for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
      CHECK(driver.marks.items.contains("table/Tensor"));
    }
  }
}

TEST_CASE("several jobs are in rows of their own, each with its own Cancel and Pause") {
  JobState repair, compare, check;
  repair.running = compare.running = check.running = true;
  repair.title = "Repairing", repair.verb = "repair";
  compare.title = "Comparing", compare.verb = "compare";
  check.title = "Checking every byte", check.verb = "check";
  check.paused = true;
  for (auto [size, scale] : {std::pair{ImVec2{1280, 720}, 1.0f}, {ImVec2{960, 540}, 1.0f}}) {
    Driver driver(make::demo_planned(), size, scale);
    driver.show(make::demo_planned(), repair, {compare, check});
    driver.frame();
    driver.frame();
    for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
    auto said = [&](const char* name) {
      auto commands = driver.click(name);
      return commands.size() == 1 ? to_text(commands[0]) : "";
    };
    CHECK(said("job/cancel") == "cancel repair");
    CHECK(said("job/cancel/compare") == "cancel compare");
    CHECK(said("job/pause/compare") == "pause compare");
    CHECK(said("job/pause/check") == "continue check");
    CHECK(driver.middle("job/cancel").y < driver.middle("job/cancel/compare").y);
  }
}

TEST_CASE("the repair offers the devices that are there with what each would take") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  Driver driver(snapshot);
  driver.desk.plan_open = true;
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("plan/device/auto"));
  auto outlook = std::make_shared<RepairEstimate>();
  outlook->devices = {{"cpu", "16 threads", 12}};
  outlook->no_gpu = "none was found";
  snapshot = std::make_shared<Snapshot>(*snapshot);
  snapshot->outlook = outlook;
  driver.show(snapshot);
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("plan/device/auto"));
  CHECK_FALSE(driver.marks.items.contains("plan/device/cpu"));
  outlook = std::make_shared<RepairEstimate>();
  outlook->devices = {{"cpu", "16 threads", 12}, {"cuda:0", "NVIDIA H100", 3}};
  snapshot = std::make_shared<Snapshot>(*snapshot);
  snapshot->outlook = outlook;
  driver.show(snapshot);
  driver.click("plan/device/cuda:0");
  auto commands = driver.click("plan/apply");
  REQUIRE_FALSE(commands.empty());
  const auto* repair = std::get_if<RepairCommand>(&commands[0]);
  REQUIRE(repair != nullptr);
  CHECK(to_text(repair->options.device) == "cuda:0");
}

TEST_CASE("no two names of the table read the same, also next to both columns") {
  for (ImVec2 size : {ImVec2{1280, 720}, ImVec2{960, 540}}) {
    CAPTURE(size.x);
    TableDriver driver(unfiltered(), size);
    std::map<std::string, std::string> shown;
    for (const auto& [name, box] : driver.marks.items) {
      if (!name.starts_with("table/row/")) continue;
      const TextMark* first = nullptr;
      for (const TextMark& text : driver.marks.texts) {
        float middle = (text.box.y + text.box.w) / 2;
        bool inside =
            middle > box.y && middle < box.w && text.box.x >= box.x && text.box.z <= box.z;
        if (inside && (first == nullptr || text.box.x < first->box.x)) first = &text;
      }
      REQUIRE(first != nullptr);
      auto [other, is_new] = shown.emplace(first->text, name);
      CHECK_MESSAGE(is_new, other->second, " and ", name, " read ", first->text);
    }
    CHECK(shown.size() > 8);
  }
}
