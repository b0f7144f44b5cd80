// What a person finds who knows the letters and not the name: tensors, commands.
#include <doctest/doctest.h>

#include <algorithm>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

const FilterCommand* filter_in(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* filter = std::get_if<FilterCommand>(&command)) return filter;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a list that nothing passes offers the letters in their order, and all tensors") {
  auto snapshot = make::demo();
  snapshot->order = std::make_shared<std::vector<std::uint32_t>>();
  snapshot->filter = "l3dp dtype:bf16";
  Driver driver(snapshot, {1280, 720}, 1);
  driver.desk.filter = snapshot->filter;
  driver.frame();
  driver.frame();
  CHECK(driver.text_faults().empty());
  auto commands = driver.click("list/letters");
  REQUIRE(filter_in(commands) != nullptr);
  CHECK(filter_in(commands)->text == "~l3dp dtype:bf16");
  CHECK(driver.desk.filter == "~l3dp dtype:bf16");
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("list/letters"));  // they were tried
  commands = driver.click("list/all");
  REQUIRE(filter_in(commands) != nullptr);
  CHECK(filter_in(commands)->text.empty());
}

TEST_CASE("the palette finds a command by the letters that its words begin with") {
  Driver driver(make::demo_planned());
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  driver.type("cttbfin");
  CHECK(driver.marks.items.contains("palette/Colour the tiles by finding"));
  CHECK_FALSE(driver.marks.items.contains("palette/Quit"));
  driver.frame({{Key::kEnter}});
  CHECK(driver.desk.colour_by == ColourBy::kFinding);
  CHECK_FALSE(driver.desk.palette_open);
}

TEST_CASE("what is called as it was typed stands before what has the letters") {
  Driver driver(make::demo_planned());
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  driver.type("zoom");
  const auto& items = driver.marks.items;
  REQUIRE(items.contains("palette/Zoom in"));
  float lowest = 0, highest = 1e9f;
  for (const auto& [name, box] : items) {
    if (!name.starts_with("palette/") || name == "palette/text") continue;
    bool called = name.find("Zoom") != std::string::npos;
    if (called) lowest = std::max(lowest, box.y);
    if (!called) highest = std::min(highest, box.y);
  }
  CHECK(lowest < highest);
}

TEST_CASE("a palette that knows no such command says so") {
  Driver driver(make::demo_planned());
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  driver.type("qqqq");
  driver.frame();
  bool said = std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(), [](const auto& t) {
    return t.text.find("No command") != std::string::npos;
  });
  CHECK(said);
  driver.frame({{Key::kEnter}});
  CHECK(driver.desk.palette_open);
}
