#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> with_values() {
  return make::with_values(make::demo());
}

const ValuesCommand* values_of(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* values = std::get_if<ValuesCommand>(&command)) return values;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the values of the slice that the map shows are one key away, and closed by Escape") {
  Driver driver(make::demo());
  driver.frame();
  driver.frame();
  auto commands = driver.frame({{Key::kV, true, true, false}});
  REQUIRE(values_of(commands) != nullptr);
  const auto& dims = values_of(commands)->ask.dims;
  REQUIRE(dims.size() == 3);
  CHECK_FALSE(dims[0].shown);
  CHECK(dims[1].shown);
  CHECK(dims[2].shown);
  driver.frame();
  CHECK(driver.marks.items.contains("values/close"));
  driver.show(with_values());
  driver.frame();
  commands = driver.frame({{Key::kEscape}});
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->close);
  driver.show(make::demo());
  driver.frame();
  CHECK(driver.marks.items.contains("map/saved"));
}

TEST_CASE("a click into the heat map looks closer, and the whole slice comes back") {
  Driver driver(with_values());
  auto commands = driver.click("values/map");
  REQUIRE(values_of(commands) != nullptr);
  verbs::ValuesRequest closer = values_of(commands)->ask;
  auto snapshot = with_values();
  ExtentsView shape = snapshot->checkpoint->shape(*snapshot->tensor);
  CHECK(closer.dims[0] == verbs::DimRange{3, 4, false});
  CHECK(closer.dims[1].last - closer.dims[1].first == shape[1] / 4);
  CHECK(closer.dims[1].first > 0);
  auto look = std::make_shared<ShownValues>(*snapshot->values);
  look->values->ask = closer;
  look->values->rows = shape[1] / 4;
  look->values->columns = shape[2] / 4;
  snapshot->values = look;
  driver.show(snapshot);
  commands = driver.click("values/all");
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims[1] == verbs::DimRange{0, shape[1], true});
}

TEST_CASE("values: a page is what is on screen, and the wheel goes on by rows") {
  Driver driver(with_values());
  driver.frame();
  driver.frame();
  // The table of this slice has two rows and two columns.
  CHECK(driver.desk.values.shown_rows == 2);
  auto commands = driver.frame({{Key::kDown, true, false, false}});
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims[1] == verbs::DimRange{2, 4, true});
  commands = driver.frame({{Key::kRight, true, false, false}});
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims[2] == verbs::DimRange{2, 4, true});
  const ImVec2 middle = driver.middle("values/table");
  move_mouse(middle);
  driver.frame();
  turn_wheel(-1);
  commands = driver.frame();
  turn_wheel(0);
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims[1] == verbs::DimRange{2, 4, true});
}

TEST_CASE("the window of the selected tile is offered") {
  auto snapshot = with_values();
  snapshot->chunk = snapshot->checkpoint->chunks(*snapshot->tensor)[0];
  Driver driver(snapshot);
  auto commands = driver.click("values/tile");
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims[1].last == snapshot->checkpoint->sizes(*snapshot->chunk)[1]);
}

TEST_CASE("another tensor shows its own values, and bytes take the place of values") {
  Driver driver(with_values());
  driver.frame();
  auto other = with_values();
  other->tensor = TensorId{0};
  driver.show(other);
  auto commands = driver.frame();
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask.dims.empty());
  commands = driver.frame({{Key::kH, true, false, false}});
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->close);
  CHECK(driver.desk.bytes.open);
}

TEST_CASE("values are drawn at every size, and where nothing could be read") {
  for (ImVec2 size : {ImVec2{2560, 1440}, ImVec2{1280, 720}, ImVec2{960, 540}, ImVec2{320, 240}}) {
    Driver driver(with_values(), size);
    driver.frame();
    driver.frame();
    CHECK(driver.marks.items.contains("values/close"));
    auto failed = make::demo();
    auto look = std::make_shared<ShownValues>();
    look->error = Error{ErrorKind::kDamaged, "no such slice"};
    failed->values = look;
    driver.show(failed);
    CHECK(driver.frame().empty());
  }
}

TEST_CASE("values of a checkpoint that is no longer open are not waited for") {
  Driver driver(make::demo());
  driver.frame();
  driver.frame({{Key::kV, true, true, false}});
  CHECK(driver.desk.values.open);
  driver.show(make::damaged());
  driver.frame();
  driver.frame();
  CHECK_FALSE(driver.desk.values.open);
  CHECK(driver.marks.items.contains("map/saved"));
}

TEST_CASE("two checkpoints are side by side with what differs, and are asked for once") {
  auto snapshot = with_values();
  auto compared = std::make_shared<verbs::ComparedCheckpoints>();
  compared->a = compared->b = snapshot->checkpoint;
  snapshot->compared = compared;
  snapshot->compared_with = "/runs/7/step_8000/";
  Driver driver(snapshot, {1440, 900}, 1);
  auto commands = driver.frame();
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->ask == snapshot->values->values->ask);
  CHECK(values_of(driver.frame()) == nullptr);

  auto look = std::make_shared<ShownValues>(*snapshot->values);
  look->side_by_side.emplace();
  look->side_by_side->values = look->values;
  look->side_by_side->note = "float32 in A, bfloat16 in B: compared as numbers";
  look->side_by_side->difference.emplace();
  look->side_by_side->difference->values = *look->values;
  look->side_by_side->difference->values.statistics.elements = 4096;
  look->side_by_side->difference->values.statistics.nan = 0;
  look->side_by_side->difference->differing = 17;
  look->side_by_side->difference->greatest = 0.25;
  snapshot = std::make_shared<Snapshot>(*snapshot);
  snapshot->values = look;
  driver.show(snapshot);
  driver.frame();
  driver.frame();
  for (const char* name : {"values/map", "values/map-b", "values/map-difference"})
    CHECK_MESSAGE(driver.marks.items.contains(name), name);
  bool says = false, how = false;
  for (const TextMark& mark : driver.marks.texts) {
    says = says || mark.text.find("17 of 4,096 elements differ, by 0.25 at most") == 0;
    how = how || mark.text.find("compared as numbers") != mark.text.npos;
  }
  CHECK(says);
  CHECK(how);
  for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
  commands = driver.click("values/map-difference");
  CHECK(values_of(commands) != nullptr);  // closer in all three
  commands = driver.click("values/difference");
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->next == verbs::SearchedValue::kDifference);
  commands = driver.frame({{Key::kF3}});
  REQUIRE(values_of(commands) != nullptr);
  CHECK(values_of(commands)->next == verbs::SearchedValue::kDifference);
}
