#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

template <class T>
const T* only(const std::vector<Command>& commands) {
  return commands.size() == 1 ? std::get_if<T>(&commands[0]) : nullptr;
}

}  // namespace

TEST_CASE("every state is drawn at every size without a complaint of imgui") {
  for (ImVec2 size : {ImVec2{1440, 900}, ImVec2{1280, 720}, ImVec2{640, 360}, ImVec2{320, 240}}) {
    for (const make::State& state : make::all_states()) {
      CAPTURE(state.name);
      Driver driver(state.snapshot, size);
      driver.show(state.snapshot, state.job);
      for (int i = 0; i < 3; ++i) CHECK(driver.frame().empty());
      driver.desk.plan_open = true;
      driver.frame();
      driver.desk.plan_open = false;
      driver.desk.explain_open = driver.desk.palette_open = true;
      driver.frame();
      driver.frame();
      CHECK(ImGui::GetDrawData()->TotalVtxCount > 0);
    }
  }
}

TEST_CASE("the next action of a finding opens the plan, and makes one where there is none") {
  Driver driver(make::demo());
  auto commands = driver.click("bar/next");
  CHECK(only<PlanCommand>(commands) != nullptr);
  CHECK(driver.desk.plan_open);
}

TEST_CASE("applying the plan repairs into a new directory and proves it") {
  Driver driver(make::with_target(make::demo_planned(), "/tmp/mended"));
  driver.click("bar/next");
  driver.desk.out = "/tmp/mended";
  auto commands = driver.click("plan/apply");
  REQUIRE(commands.size() == 2);
  auto* repair = std::get_if<RepairCommand>(&commands[0]);
  REQUIRE(repair != nullptr);
  CHECK(repair->options.out == "/tmp/mended");
  CHECK_FALSE(repair->options.in_place);
  CHECK(std::holds_alternative<VerifyCommand>(commands[1]));
  CHECK_FALSE(driver.desk.plan_open);
}

TEST_CASE("in place is offered only where .metadata alone changes") {
  Driver relabel(make::demo_planned());
  relabel.desk.plan_open = true;
  relabel.frame();
  relabel.frame();
  CHECK(relabel.marks.items.contains("plan/in-place"));
  auto commands = relabel.click("plan/in-place");
  REQUIRE(commands.size() == 2);
  CHECK(std::get<RepairCommand>(commands[0]).options.in_place);
}

TEST_CASE("in place is not offered where bytes are rewritten") {
  Driver lossy(make::lossy());
  lossy.desk.plan_open = true;
  lossy.frame();
  lossy.frame();
  CHECK(lossy.marks.items.contains("plan/apply"));
  CHECK_FALSE(lossy.marks.items.contains("plan/in-place"));
}

TEST_CASE("a running job can be cancelled, and nothing can be applied meanwhile") {
  Driver driver(make::demo_planned());
  driver.show(make::demo_planned(), {true, "Repairing", Phase::kCopying, 1, 2, true, 1});
  CHECK(only<CancelCommand>(driver.click("job/cancel")) != nullptr);
  driver.desk.plan_open = true;
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("plan/apply"));
}

TEST_CASE("typing into the filter filters") {
  Driver driver(make::healthy());
  driver.click("filter");
  auto commands = driver.type("gate");
  auto* filter = only<FilterCommand>(commands);
  REQUIRE(filter != nullptr);
  CHECK(filter->text == "gate");
}

TEST_CASE("a click on a row chooses its tensor") {
  Driver driver(make::demo());
  auto commands = driver.click("list/row/2");
  auto* select = only<SelectTensorCommand>(commands);
  REQUIRE(select != nullptr);
  CHECK(select->fqn == "model.layers.3.moe.experts.gate_proj.weight");
}

TEST_CASE("a click on a module folds it") {
  Driver driver(make::demo());
  CHECK(driver.click("list/row/0").empty());
  CHECK(driver.desk.folded.contains("layers.3.moe.experts"));
  CHECK_FALSE(driver.marks.items.contains("list/row/1"));
}

TEST_CASE("arrows move through the list and pass over the heads") {
  Driver driver(make::demo());
  driver.frame();
  auto commands = driver.frame({{Key::kDown}});
  auto* select = only<SelectTensorCommand>(commands);
  REQUIRE(select != nullptr);
  CHECK(select->fqn == "model.layers.3.moe.experts.gate_proj.weight");
}

TEST_CASE("every press of Down moves one row, and a fold that is stepped onto opens") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->tensor = TensorId{0};
  Driver driver(snapshot);
  driver.frame();
  REQUIRE_FALSE(make_list(*snapshot)->runs.empty());
  std::set<std::string> seen;
  for (int press = 0; press < 200; ++press) {
    auto commands = driver.frame({{Key::kDown}});
    auto* select = only<SelectTensorCommand>(commands);
    REQUIRE(select != nullptr);
    CHECK(seen.insert(select->fqn).second);
    snapshot = std::make_shared<Snapshot>(*snapshot);
    snapshot->tensor = snapshot->checkpoint->find(select->fqn);
    driver.show(snapshot);
    driver.frame();
  }
  std::string last = *seen.rbegin();
  for (int press = 0; press < 30; ++press) {
    auto commands = driver.frame({{Key::kUp}});
    auto* select = only<SelectTensorCommand>(commands);
    REQUIRE(select != nullptr);
    CHECK(seen.contains(select->fqn));
    snapshot = std::make_shared<Snapshot>(*snapshot);
    snapshot->tensor = snapshot->checkpoint->find(select->fqn);
    driver.show(snapshot);
    driver.frame();
  }
}

TEST_CASE("a click on folded layers opens them, and visible rows have names of their own") {
  Driver driver(make::healthy(), {1280, 720}, 1);
  driver.frame();
  driver.frame();
  for (const char* row : {"list/row/1", "list/row/2", "list/row/3"}) {
    if (driver.marks.items.contains(row)) driver.click(row);
  }
  CHECK_FALSE(driver.desk.unfolded.empty());
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
}

TEST_CASE("F8 goes to the next finding and from the last to the first") {
  auto snapshot = make::damaged();
  Driver driver(snapshot);
  auto commands = driver.frame({{Key::kF8}});
  REQUIRE(only<SelectFindingCommand>(commands));
  CHECK(only<SelectFindingCommand>(commands)->index == 2);
  auto last = std::make_shared<Snapshot>(*snapshot);
  last->finding = 2;
  driver.show(last);
  commands = driver.frame({{Key::kF8}});
  CHECK(only<SelectFindingCommand>(commands)->index == 0);
  commands = driver.frame({{Key::kF8, false, true, false}});
  CHECK(only<SelectFindingCommand>(commands)->index == 1);
}

TEST_CASE("pointing at a tile finds it by arithmetic, in every picture") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  auto first = static_cast<std::uint32_t>(snapshot->checkpoint->chunks(*snapshot->tensor).first);
  ImVec4 saved = driver.marks.items.at("map/saved"), after = driver.marks.items.at("map/after");
  auto at = [&](ImVec4 box, float x, float y) {
    move_mouse({box.x + (box.z - box.x) * x, box.y + (box.w - box.y) * y});
    driver.frame();
    driver.frame();
    return driver.desk.map.hovered;
  };
  // The slice is at rank 33's tile: rank 1 above, rank 33 below; side by side afterwards.
  CHECK(at(saved, 0.5f, 0.25f) == ChunkId{first + 1});
  CHECK(at(saved, 0.5f, 0.75f) == ChunkId{first + 33});
  CHECK(at(after, 0.25f, 0.5f) == ChunkId{first + 1});
  CHECK(at(after, 0.75f, 0.5f) == ChunkId{first + 33});
}

TEST_CASE("the tooltip at a tile says who wrote it and where its bytes are") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  ImVec4 box = driver.marks.items.at("map/saved");
  move_mouse({(box.x + box.z) / 2, box.y + (box.w - box.y) * 0.75f});
  driver.frame();
  driver.frame();
  auto says = [&](std::string_view text) {
    return driver.marks.tooltip.find(text) != std::string::npos;
  };
  CHECK(says("rank 33  (ep_shard 1, ep 1)"));
  CHECK(says("offsets [9, 4096, 0]"));
  CHECK(says("sizes [9, 4096, 640]"));
  CHECK(says("__33_0.distcp"));
  CHECK(says("0x"));
  CHECK(says(" bytes"));
}

TEST_CASE("the inspector says when the finding is of another tensor, and leads to its own") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  auto says = [](const Driver& driver, std::string_view text) {
    return std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(),
                       [&](const TextMark& mark) { return mark.text.find(text) == 0; });
  };
  {
    Driver driver(snapshot);
    driver.frame();
    CHECK_FALSE(says(driver, "No finding names this tensor."));
  }
  for (std::uint32_t t = 0; t < snapshot->checkpoint->tensor_count(); ++t) {
    const auto& subjects = snapshot->report->findings[0].subjects;
    std::string fqn(snapshot->checkpoint->fqn(TensorId{t}));
    if (std::find(subjects.begin(), subjects.end(), fqn) == subjects.end())
      snapshot->tensor = TensorId{t};
  }
  Driver driver(snapshot);
  driver.frame();
  CHECK(says(driver, "No finding names this tensor."));
}

TEST_CASE("more subjects than fit unfold") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo());
  auto report = std::make_shared<CheckReport>(*snapshot->report);
  for (int i = 0; i < 40; ++i) report->findings[0].subjects.push_back("extra." + std::to_string(i));
  snapshot->report = report;
  Driver driver(snapshot, {1440, 2000});
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("subject/30"));
  driver.click("subject/more");
  driver.frame();
  CHECK(driver.marks.items.contains("subject/30"));
}

TEST_CASE("a healthy start shows the checkpoint as a whole, and a click on a part lists it") {
  auto snapshot = std::make_shared<Snapshot>(*make::healthy());
  snapshot->tensor.reset();
  Driver driver(snapshot);
  driver.frame();
  auto commands = driver.click("overview/bfloat16");
  REQUIRE(commands.size() == 1);
  CHECK(std::get<FilterCommand>(commands[0]).text == "dtype:bfloat16");
  double bytes = 0, all = 0;
  auto overview = make_digest(snapshot)->overview;
  for (const SizeShare& share : overview->modules) bytes += share.bytes;
  for (const SizeShare& share : overview->dtypes) all += share.bytes;
  CHECK(bytes == all);
  CHECK(overview->layers.empty());
}

TEST_CASE("the overview counts the findings of each layer and can be called up and left") {
  auto snapshot = make::demo();
  auto overview = make_digest(snapshot)->overview;
  REQUIRE(overview->layers.size() == 1);
  CHECK(overview->layers[0].name == "model.layers.3");
  CHECK(overview->layers[0].tensors == 3);
  Driver driver(snapshot);
  driver.frame();
  driver.frame({{Key::kHome, true, false, false}});
  driver.frame();
  CHECK(driver.marks.items.contains("overview/model.layers.3"));
  auto other = std::make_shared<Snapshot>(*snapshot);
  other->tensor = TensorId{1};
  driver.show(other);
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("overview/model.layers.3"));
}

TEST_CASE("a right click offers the tile as text, and its rank alone") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  driver.frame();
  driver.frame();
  ImVec4 box = driver.marks.items.at("map/saved");
  auto open_menu = [&] {
    move_mouse({(box.x + box.z) / 2, box.y + (box.w - box.y) * 0.75f});
    driver.frame();
    for (bool down : {true, false}) {
      press_mouse(down, 1);
      driver.frame();
    }
    driver.frame();
  };
  open_menu();
  driver.click("menu/Copy Python slice");
  CHECK(std::string(ImGui::GetClipboardText()) ==
        "state_dict[\"model.layers.3.moe.experts.down_proj.weight\"][9:18, 4096:8192, 0:640]");
  open_menu();
  driver.click("menu/Copy JSON");
  CHECK(std::string(ImGui::GetClipboardText()).find("\"offsets\": [9, 4096, 0]") !=
        std::string::npos);
  open_menu();
  driver.click("menu/Show this rank alone");
  CHECK(driver.desk.isolated == 33u);
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.isolated.has_value());
}

TEST_CASE("a cell of the mesh isolates its rank, and tiles are coloured by a mesh axis") {
  Driver driver(make::demo_planned());
  driver.click("mesh");
  REQUIRE(driver.desk.isolated.has_value());
  MeshGrid grid{2, 32};
  Colouring only{0, 0, 5};
  CHECK(tile_colour(5, grid, only) == writer_colour(5, grid, {}));
  CHECK(tile_colour(6, grid, only) != writer_colour(6, grid, {}));
  driver.click("colour");  // turns off "only rank N"
  CHECK_FALSE(driver.desk.isolated.has_value());
  driver.click("colour");
  driver.click("colour/ep_shard");
  CHECK(driver.desk.colour_axis == 0);
  Colouring by_axis{32, 2, {}};
  CHECK(tile_colour(1, grid, by_axis) == tile_colour(31, grid, by_axis));
  CHECK(tile_colour(1, grid, by_axis) != tile_colour(33, grid, by_axis));
}

TEST_CASE("saved, expected and after are at one scale") {
  Driver driver(make::demo_planned());
  driver.frame();
  driver.frame();
  ImVec4 saved = driver.marks.items.at("map/saved"), after = driver.marks.items.at("map/after");
  CHECK((saved.z - saved.x) * 2 == doctest::Approx(after.z - after.x).epsilon(0.02));
  CHECK((saved.w - saved.y) == doctest::Approx(2 * (after.w - after.y)).epsilon(0.02));
}

TEST_CASE("the command palette finds a command by its name and carries it out") {
  Driver driver(make::demo());
  driver.frame({{Key::kP, true, true, false}});
  CHECK(driver.desk.palette_open);
  driver.frame();
  driver.frame();
  driver.type("by bytes");
  auto commands = driver.frame({{Key::kEnter}});
  auto* sort = only<SortCommand>(commands);
  REQUIRE(sort != nullptr);
  CHECK(sort->key == SortKey::kBytes);
  CHECK_FALSE(driver.desk.palette_open);
}

TEST_CASE("a list of many tensors draws only what is visible") {
  auto vertices_of = [](std::uint32_t tensors) {
    Driver driver(make::many_tensors(tensors));
    driver.frame();
    driver.frame();
    return ImGui::GetDrawData()->TotalVtxCount;
  };
  int few = vertices_of(200);
  CHECK(vertices_of(40'000) < few * 2);
}

TEST_CASE("random clicks, keys and snapshots never upset the desktop") {
  std::mt19937 random(20261);
  auto states = make::all_states();
  Driver driver(states[0].snapshot, {1280, 720});
  ImGuiIO& io = ImGui::GetIO();
  for (int i = 0; i < 3000; ++i) {
    if (random() % 25 == 0) {
      const auto& state = states[random() % states.size()];
      auto snapshot = std::make_shared<Snapshot>(*state.snapshot);
      if (snapshot->checkpoint && snapshot->checkpoint->tensor_count() > 0 && random() % 2)
        snapshot->tensor =
            TensorId{static_cast<std::uint32_t>(random() % snapshot->checkpoint->tensor_count())};
      if (snapshot->checkpoint && random() % 3 == 0)
        snapshot->chunk = ChunkId{
            static_cast<std::uint32_t>(random() % (snapshot->checkpoint->chunk_count() + 2))};
      driver.show(snapshot, state.job);
    }
    move_mouse({static_cast<float>(random() % 1400) - 50, static_cast<float>(random() % 800) - 30});
    press_mouse(random() % 3 == 0);
    turn_wheel(random() % 9 == 0 ? static_cast<float>(random() % 7) - 3 : 0);
    std::vector<KeyPress> keys;
    if (random() % 4 == 0)
      keys.push_back({static_cast<Key>(random() % static_cast<unsigned>(Key::kCount)),
                      random() % 4 == 0, random() % 4 == 0, random() % 8 == 0});
    if (random() % 10 == 0) io.AddInputCharactersUTF8("é:*[9");
    driver.frame(keys);
    CHECK(driver.desk.map.zoom >= 1);
    driver.desk.quit = false;
  }
}
