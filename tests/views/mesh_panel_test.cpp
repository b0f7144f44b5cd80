#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/map/tensor_view.h"

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
  CHECK(make_mesh(*snapshot)->text == "dp 4 (rows) × tp 16 (columns) · given by you");
  Driver driver(snapshot);
  driver.desk.mesh_open = true;
  driver.frame();
  auto commands = driver.click("mesh/forget");
  REQUIRE(commands.size() == 3);
  CHECK(std::get<MeshCommand>(commands[0]).text.empty());
}

TEST_CASE("titles that need more room than there is do not starve the pictures") {
  float room = 300, gap = 10;
  PanelOptions wishes[] = {{640, 90}, {1280, 90}, {1280, 90}};
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

TEST_CASE("an axis of the mesh that is said moves outwards at a press") {
  Driver driver(make::demo_planned());
  driver.desk.mesh_open = true;
  driver.desk.mesh_text = "dp=4,tp=8,pp=2";
  driver.frame();
  driver.click("mesh/axis/2");
  CHECK(driver.desk.mesh_text == "dp=4,pp=2,tp=8");
  driver.click("mesh/axis/0");  // outermost already
  CHECK(driver.desk.mesh_text == "dp=4,pp=2,tp=8");
  auto commands = driver.click("mesh/use");
  REQUIRE_FALSE(commands.empty());
  CHECK(std::get<MeshCommand>(commands[0]).text == "dp=4,pp=2,tp=8");
}

TEST_CASE("what a rank wrote of all tensors is the sum of its tiles") {
  auto snapshot = make::demo_planned();
  const Checkpoint& checkpoint = *snapshot->checkpoint;
  auto mesh = make_mesh(*snapshot);
  REQUIRE(mesh->shares.size() == 64);
  std::uint64_t tiles = 0, bytes = 0;
  for (const RankShare& share : mesh->shares) {
    tiles += share.tiles;
    bytes += share.bytes;
    CHECK(share.tensors <= share.tiles);
  }
  CHECK(tiles == checkpoint.chunk_count());
  CHECK(bytes == checkpoint.tensor_bytes());
  std::uint32_t tensors = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    bool any = false;
    for (ChunkId chunk : checkpoint.chunks(TensorId{t}))
      any = any || checkpoint.writer(chunk) == 5u;
    tensors += any ? 1 : 0;
  }
  CHECK(mesh->shares[5].tensors == tensors);
}

TEST_CASE("a click on a cell of the mesh sets its rank apart, and again takes that back") {
  Driver driver(make::demo_planned());
  driver.desk.mesh_open = true;
  driver.frame();
  driver.frame();
  driver.click("mesh/cells");
  REQUIRE(driver.desk.isolated.has_value());
  CHECK(*driver.desk.isolated == 32 + 16);  // two rows of 32: the middle begins the second
  driver.click("mesh/cells");
  CHECK_FALSE(driver.desk.isolated.has_value());
}
