#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/imgui_versions.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> with_bytes() {
  return make::with_bytes(make::demo(),
                          verbs::BytesRecord{"model.weight", ChunkId{0}, {FileId{0}, 1000, 280}});
}

const BytesCommand* bytes_of(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* bytes = std::get_if<BytesCommand>(&command)) return bytes;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a finding is two clicks from its bytes") {
  Driver driver(make::demo());
  auto commands = driver.click("finding/bytes");
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->go == BytesCommand::Go::kFinding);
  CHECK(driver.desk.bytes.open);
  driver.frame();
  CHECK(driver.marks.items.contains("bytes/close"));
}

TEST_CASE("Ctrl+H shows the bytes of the tile, Escape leaves them") {
  Driver driver(make::demo());
  driver.frame();
  auto commands = driver.frame({{Key::kH, true, false, false}});
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->go == BytesCommand::Go::kTile);
  driver.show(with_bytes());
  driver.frame();
  commands = driver.frame({{Key::kEscape}});
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->go == BytesCommand::Go::kClose);
  driver.show(make::demo());
  driver.frame();
  CHECK_FALSE(driver.marks.items.contains("bytes/close"));
  CHECK(driver.marks.items.contains("map/saved"));
}

TEST_CASE("the bytes scroll by keys and wheel, and go on from record to record") {
  Driver driver(with_bytes());
  driver.desk.map_has_keys = true;
  driver.frame();
  auto commands = driver.frame({{Key::kDown}});
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->at == 1040);
  commands = driver.frame({{Key::kPageUp}});
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->at < 1024);
  commands = driver.click("bytes/next");
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->go == BytesCommand::Go::kNext);
  move_mouse(driver.middle("bytes/grid"));
  driver.frame();
  turn_wheel(-1);
  commands = driver.frame();
  turn_wheel(0);
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->at == 1024 + 48);
}

TEST_CASE("an offset that is typed is gone to") {
  Driver driver(with_bytes());
  driver.click("bytes/jump");
  driver.type("0x800");
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = true;
  auto commands = driver.frame();
  ImGui::GetIO().KeysDown[ImGuiKey_Enter] = false;
  auto after = driver.frame();
  commands.insert(commands.end(), after.begin(), after.end());
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->at == 0x800);
}

TEST_CASE("a click on a byte chooses it, and the bytes on the screen can be copied") {
  Driver driver(with_bytes());
  driver.click("bytes/grid");
  REQUIRE(driver.desk.bytes.chosen.has_value());
  CHECK(*driver.desk.bytes.chosen > 1024);
  driver.click("bytes/copy");
  std::string text = ImGui::GetClipboardText();
  CHECK(text.find("00000400  00 01 02 03") != std::string::npos);
}

TEST_CASE("bytes are drawn at every size") {
  for (ImVec2 size : {ImVec2{2560, 1440}, ImVec2{1280, 720}, ImVec2{960, 540}, ImVec2{320, 240}}) {
    Driver driver(with_bytes(), size);
    driver.frame();
    driver.frame();
    CHECK(driver.marks.items.contains("bytes/grid"));
  }
}

TEST_CASE("the payload of a record is one click away") {
  Driver driver(with_bytes());
  auto commands = driver.click("bytes/payload");
  REQUIRE(bytes_of(commands) != nullptr);
  CHECK(bytes_of(commands)->at == 1040);
}
