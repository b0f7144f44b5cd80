#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/tensor_view.h"

using namespace shw;

TEST_CASE("a mesh that is said is taken over, checked and planned with") {
  Driver driver(make::demo_planned());
  driver.click("mesh/open");
  CHECK(driver.desk.mesh_open);
  driver.desk.mesh_text = "ep_shard=2,ep=32";
  driver.frame();
  auto commands = driver.click("mesh/use");
  REQUIRE(commands.size() == 3);
  REQUIRE(std::holds_alternative<MeshCommand>(commands[0]));
  CHECK(std::get<MeshCommand>(commands[0]).text == "ep_shard=2,ep=32");
  REQUIRE(std::holds_alternative<CheckCommand>(commands[1]));
  CHECK(std::holds_alternative<PlanCommand>(commands[2]));
  CHECK_FALSE(driver.desk.mesh_open);
}

TEST_CASE("a mesh that cannot be read is not offered for use") {
  Driver driver(make::demo_planned());
  driver.desk.mesh_open = true;
  driver.desk.mesh_text = "dp=";
  driver.frame();
  driver.frame();
  CHECK(driver.marks.items.contains("mesh/text"));
  CHECK_FALSE(driver.marks.items.contains("mesh/use"));
}

TEST_CASE("a mesh that was said names the axes until it is inferred again") {
  auto snapshot = std::make_shared<Snapshot>(*make::demo_planned());
  snapshot->mesh = *parse_mesh("dp=4,tp=16");
  CHECK(make_mesh(*snapshot)->text == "dp 4 (rows) × tp 16 (columns) · said by you");
  Driver driver(snapshot);
  driver.desk.mesh_open = true;
  driver.frame();
  auto commands = driver.click("mesh/forget");
  REQUIRE(commands.size() == 3);
  CHECK(std::get<MeshCommand>(commands[0]).text.empty());
}

TEST_CASE("titles that need more room than there is do not starve the pictures") {
  float room = 300, gap = 10;
  PanelWish wishes[] = {{640, 90}, {1280, 90}, {1280, 90}};
  CHECK(column_pixels_for(wishes, room, gap) * 1280 >= 89);
}

TEST_CASE("on a small screen every picture of the demo is still seen") {
  Driver driver(make::demo_planned(), {1280, 720});
  for (int i = 0; i < 3; ++i) driver.frame();
  for (const char* name : {"map/saved", "map/after"}) {
    REQUIRE(driver.marks.items.contains(name));
    ImVec4 box = driver.marks.items.find(name)->second;
    CHECK(box.z - box.x > 40);
    CHECK(box.w - box.y > 80);
  }
}

TEST_CASE("what is lost has no writer in the picture after the repair") {
  auto digest = make_digest(make::lossy());
  const Picture& picture = *digest->picture;
  REQUIRE(picture.after != nullptr);
  REQUIRE_FALSE(picture.lost.empty());
  CHECK(picture.after_text.find("elements kept") != std::string::npos);
  CHECK_FALSE(picture.fill_text.empty());
  for (const Box& box : picture.lost) CHECK_FALSE(picture.after->find(box.offsets).has_value());
}

TEST_CASE("the expected layout names the rank that would hold each part") {
  auto digest = make_digest(make::demo_planned());
  const Picture& picture = *digest->picture;
  REQUIRE(picture.expected_tiles != nullptr);
  CHECK(picture.expected_tiles->size() == 64);
  auto tile = picture.expected_tiles->find(Extents{0, 0, 640});
  REQUIRE(tile.has_value());
  CHECK(picture.expected_tiles->writer(*tile) == 32);
  REQUIRE(picture.expected_places[*tile].size() == 2);
  CHECK(picture.expected_places[*tile][0].text == "ep_shard 1");
  CHECK(picture.expected_places[*tile][0].dim == 2);
}
