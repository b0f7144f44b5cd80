#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/panels/browser.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> with_folder(std::shared_ptr<Snapshot> snapshot, const char* folder,
                                      std::size_t steps = 3) {
  auto listing = std::make_shared<verbs::FolderListing>();
  listing->asked = listing->path = folder;
  if (listing->path.size() > 1) listing->path.pop_back();
  listing->places.push_back({"notes", verbs::PlaceKind::kFolder, true, "3 checkpoints inside", {}});
  for (std::size_t i = 0; i < steps; ++i)
    listing->places.push_back(
        {"step_" + std::to_string(i * 1000), verbs::PlaceKind::kCheckpoint, true, "DCP", 1142});
  listing->looked = listing->places.size();
  snapshot->folder = listing;
  snapshot->recent = std::make_shared<verbs::RecentPlaces>(
      verbs::RecentPlaces{{"/old/run", "spec.json", "", "", "findings", "3 findings"}});
  return snapshot;
}

template <class C>
const C* first_of(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* found = std::get_if<C>(&command)) return found;
  }
  return nullptr;
}

void open_at(Driver& driver, const char* text) {
  driver.frame({{Key::kO, true, false, false}});
  driver.desk.browser.text = text;
  driver.desk.browser.pending = text;  // the field has the keyboard and keeps its own text
  driver.frame();
  driver.frame();
}

}  // namespace

TEST_CASE("Ctrl+O lists the folder next to what is open, and Escape leaves it as it was") {
  auto snapshot = make::demo();
  snapshot->options.checkpoint = "/runs/7/step_9000";
  Driver driver(snapshot);
  auto commands = driver.frame({{Key::kO, true, false, false}});
  const auto* browse = first_of<BrowseCommand>(commands);
  REQUIRE(browse != nullptr);
  CHECK(browse->folder == "/runs/7/");
  CHECK(driver.frame().empty());  // asked once
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.browser.open);
}

TEST_CASE("Enter opens what is typed, an arrow and Enter what is chosen, a folder is entered") {
  Driver driver(with_folder(make::demo(), "/runs/"));
  open_at(driver, "/runs/step_1000");
  auto commands = driver.frame({{Key::kEnter}});
  REQUIRE(first_of<OpenCommand>(commands) != nullptr);
  CHECK(first_of<OpenCommand>(commands)->path == "/runs/step_1000");
  CHECK(first_of<CheckCommand>(commands) != nullptr);
  CHECK_FALSE(driver.desk.browser.open);

  open_at(driver, "/runs/");
  driver.frame({{Key::kDown}});
  driver.frame({{Key::kDown}});
  commands = driver.frame({{Key::kEnter}});
  REQUIRE(first_of<OpenCommand>(commands) != nullptr);
  CHECK(first_of<OpenCommand>(commands)->path == "/runs/step_0");

  open_at(driver, "/runs/");
  commands = driver.click("browser/row/0");
  CHECK(first_of<OpenCommand>(commands) == nullptr);
  REQUIRE(first_of<BrowseCommand>(commands) != nullptr);
  CHECK(first_of<BrowseCommand>(commands)->folder == "/runs/notes/");
  CHECK(driver.desk.browser.text == "/runs/notes/");
}

TEST_CASE("a folder that is typed and entered stays what is listed") {
  Driver driver(with_folder(make::demo(), "/runs/"));
  open_at(driver, "/runs/notes");
  driver.frame({{Key::kEnter}});
  for (int i = 0; i < 4; ++i) driver.frame();
  CHECK(driver.desk.browser.text == "/runs/notes/");
}

TEST_CASE("Tab completes as far as the names agree, also while the field is typed in") {
  Driver driver(with_folder(make::demo(), "/runs/"));
  open_at(driver, "/runs/st");
  driver.frame({{Key::kTab}});
  driver.frame();
  CHECK(driver.desk.browser.text == "/runs/step_");
  driver.type("1");
  CHECK(driver.desk.browser.text == "/runs/step_1");
  driver.frame({{Key::kTab}});
  driver.frame();
  driver.frame();
  CHECK(driver.desk.browser.text == "/runs/step_1000/");
}

TEST_CASE("no letter is lost where a path is begun again faster than frames are drawn") {
  Driver driver(with_folder(make::demo(), "/runs/"));
  open_at(driver, "/runs/");
  for (const char* key : {"/", "c", "h", "k"}) {
    ImGui::GetIO().AddInputCharactersUTF8(key);
    driver.frame();
  }
  driver.frame();
  CHECK(driver.desk.browser.text == "/chk");
}

TEST_CASE("what was opened before opens again with its spec") {
  Driver driver(with_folder(make::opening(), "/runs/", 0));
  auto snapshot = std::make_shared<Snapshot>();
  driver.show(with_folder(snapshot, "/runs/", 0));
  open_at(driver, "/runs/");
  auto commands = driver.click("browser/row/1");
  REQUIRE(first_of<OpenCommand>(commands) != nullptr);
  CHECK(first_of<OpenCommand>(commands)->path == "/old/run");
  CHECK(first_of<OpenCommand>(commands)->spec == "spec.json");
}

TEST_CASE("every step of a long run can be reached, and only what is visible is drawn") {
  Driver driver(with_folder(make::demo(), "/runs/", 5000), {1280, 720});
  open_at(driver, "/runs/");
  int few = ImGui::GetDrawData()->TotalVtxCount;
  for (int i = 0; i < 400; ++i) driver.frame({{Key::kDown}});
  driver.frame();
  CHECK(driver.marks.items.contains("browser/row/399"));
  CHECK_FALSE(driver.marks.items.contains("browser/row/100"));
  CHECK(ImGui::GetDrawData()->TotalVtxCount < few * 2);
}

TEST_CASE("a path that is not listed is opened as typed, and an error offers to look around") {
  Driver driver(with_folder(make::demo(), "/runs/"));
  open_at(driver, "/elsewhere/x");
  auto commands = driver.frame({{Key::kEnter}});
  REQUIRE(first_of<OpenCommand>(commands) != nullptr);
  CHECK(first_of<OpenCommand>(commands)->path == "/elsewhere/x");
  auto failed = make::cannot_open();
  driver.show(failed);
  commands = driver.click("open/browse");
  CHECK(driver.desk.browser.open);
  REQUIRE(first_of<BrowseCommand>(commands) != nullptr);
}

TEST_CASE("Alt with the arrows goes back and forward where there is a way") {
  auto snapshot = make::demo();
  Driver driver(snapshot);
  CHECK(first_of<GoCommand>(driver.frame({{Key::kLeft, false, false, true}})) == nullptr);
  auto there = std::make_shared<Snapshot>(*snapshot);
  there->can_go_back = true;
  driver.show(there);
  const auto commands = driver.frame({{Key::kLeft, false, false, true}});
  REQUIRE(first_of<GoCommand>(commands) != nullptr);
  CHECK(first_of<GoCommand>(commands)->step == -1);
}

TEST_CASE("what is typed is taken apart, and names agree up to where they differ") {
  CHECK(split_typed_path("/runs/7/st") == std::pair<std::string, std::string>{"/runs/7/", "st"});
  CHECK(split_typed_path("~") == std::pair<std::string, std::string>{"~/", ""});
  CHECK(split_typed_path("x") == std::pair<std::string, std::string>{"", "x"});
  CHECK(common_prefix({"step_100", "step_1000", "step_12"}) == "step_1");
  CHECK(common_prefix({}).empty());
}

TEST_CASE("the browser is drawn at every size") {
  for (ImVec2 size : {ImVec2{2560, 1440}, ImVec2{960, 540}, ImVec2{320, 240}}) {
    Driver driver(with_folder(make::demo(), "/runs/"), size);
    open_at(driver, "/runs/");
    CHECK(driver.marks.items.contains("browser/path"));
  }
}

TEST_CASE("a checkpoint that is dropped is opened, and a folder of them is browsed") {
  Driver driver(make::demo());
  auto drop = [&](const char* path) {
    driver.desk.browser.dropped = path;
    driver.desk.browser.is_drop_listing_requested = false;
    auto commands = driver.frame();
    const auto* browse = first_of<BrowseCommand>(commands);
    REQUIRE(browse != nullptr);
    CHECK(browse->folder == path);
    CHECK(driver.frame().empty());  // asked once; nothing is opened before the answer
  };
  drop("/runs/7");
  auto listed = with_folder(make::demo(), "/runs/7");
  auto listing = std::make_shared<verbs::FolderListing>(*listed->folder);
  driver.show(listed);
  CHECK(driver.frame().empty());  // the names were read, but not the kind of the folder
  listing->here.looked = true;
  listing->here.what = "3 checkpoints inside";
  listed = std::make_shared<Snapshot>(*listed);
  listed->folder = listing;
  driver.show(listed);
  auto commands = driver.frame();
  CHECK(first_of<OpenCommand>(commands) == nullptr);
  CHECK(driver.desk.browser.open);
  CHECK(driver.desk.browser.text == "/runs/7/");
  driver.frame({{Key::kEscape}});

  drop("/runs/7/step_1000");
  auto step = std::make_shared<verbs::FolderListing>();
  step->asked = step->path = "/runs/7/step_1000";
  step->here = {"", verbs::PlaceKind::kCheckpoint, true, "DCP", 12};
  listed = std::make_shared<Snapshot>(*listed);
  listed->folder = step;
  driver.show(listed);
  commands = driver.frame();
  const auto* open = first_of<OpenCommand>(commands);
  REQUIRE(open != nullptr);
  CHECK(open->path == "/runs/7/step_1000");
  CHECK_FALSE(driver.desk.browser.open);
  CHECK(driver.frame().empty());

  drop("/runs/7/model.safetensors");  // not a folder: only opening shows what it is
  auto file = std::make_shared<verbs::FolderListing>();
  file->asked = file->path = "/runs/7/model.safetensors";
  file->error = Error{ErrorKind::kIo, "not a folder"};
  listed = std::make_shared<Snapshot>(*listed);
  listed->folder = file;
  driver.show(listed);
  commands = driver.frame();
  REQUIRE(first_of<OpenCommand>(commands) != nullptr);
  CHECK(first_of<OpenCommand>(commands)->path == "/runs/7/model.safetensors");
}

TEST_CASE("a whole path that is typed behind what is there begins from scratch") {
  for (const char* path : {"/data/step_9", "~/runs/step_9"}) {
    Driver driver(make::demo());
    driver.frame({{Key::kO, true, false, false}});
    driver.desk.browser.text = "/runs/7/";
    driver.desk.browser.wanted = true;
    driver.frame();
    driver.frame();
    driver.frame({{Key::kEnd}});
    driver.type(path);
    driver.frame();
    CHECK(driver.desk.browser.text == path);
  }
}
