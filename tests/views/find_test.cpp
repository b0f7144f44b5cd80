// Searching tensors and commands by some of their letters.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/open.h"
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

TEST_CASE("what is called as it was typed comes before what has the letters") {
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

namespace {

void open_palette(Driver& driver, const char* text) {
  driver.frame({{Key::kP, true, true, false}});
  driver.frame();
  driver.type(text);
  driver.frame();
}

}  // namespace

TEST_CASE("the palette goes to a tensor by a part of its name") {
  const auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  open_palette(driver, "down_proj");
  const Checkpoint& c = *snapshot->checkpoint;
  auto commands = driver.frame({{Key::kEnter}});
  auto* select = only<SelectTensorCommand>(commands);
  REQUIRE(select != nullptr);
  CHECK(select->fqn.find("down_proj") != std::string::npos);
  CHECK(c.find(select->fqn).has_value());
  CHECK_FALSE(driver.desk.palette_open);
}

TEST_CASE("the palette goes to findings, ranks and files") {
  {
    Driver driver(make::demo_planned());
    open_palette(driver, "placement-axis");
    auto commands = driver.frame({{Key::kEnter}});
    CHECK(only<SelectFindingCommand>(commands) != nullptr);
  }
  {
    const auto snapshot = make::demo_planned();
    Driver driver(snapshot);
    open_palette(driver, "rank 3");
    auto commands = driver.frame({{Key::kEnter}});
    REQUIRE(commands.size() == 2);
    const auto* tile = std::get_if<SelectChunkCommand>(&commands[0]);  // goes to its first tile
    REQUIRE(tile != nullptr);
    CHECK(snapshot->checkpoint->writer(*tile->chunk) == 3u);
    const auto* filter = std::get_if<FilterCommand>(&commands[1]);
    REQUIRE(filter != nullptr);
    CHECK(filter->text == "rank:3");
    CHECK(driver.desk.isolated == 3u);
  }
  {
    Driver driver(make::demo_planned());
    open_palette(driver, ".distcp");
    auto commands = driver.frame({{Key::kEnter}});
    auto* bytes = only<BytesCommand>(commands);
    REQUIRE(bytes != nullptr);
    CHECK(bytes->file.ends_with(".distcp"));
  }
}

TEST_CASE("names are searched in parts, and found at the end of many") {
  const auto snapshot = make::many_tensors(40'000);
  Driver driver(snapshot);
  const Checkpoint& c = *snapshot->checkpoint;
  const std::string last(c.fqn(TensorId{c.tensor_count() - 1}));
  open_palette(driver, last.c_str());
  for (int i = 0; i < 8; ++i) driver.frame();
  CHECK(driver.marks.items.contains("palette/" + last));
  CHECK(driver.desk.search.tensors_seen == c.tensor_count());
}

TEST_CASE("names in the evidence of a finding lead to tensors and bytes") {
  const std::string path = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_grid/ckpt";
  auto opened = open_checkpoint(path);
  REQUIRE(opened.has_value());
  const auto snapshot = std::make_shared<Snapshot>();
  snapshot->options.checkpoint = path;
  snapshot->checkpoint = *opened;
  const Checkpoint& c = *snapshot->checkpoint;
  const std::string file = c.file(FileId{0}).path, tensor(c.fqn(TensorId{0}));
  Finding finding;
  finding.rule = "chunk-overlap";
  finding.cause = "Something is wrong.";
  finding.subjects = {tensor};
  finding.evidence = {{"file", file},
                      {"offset", std::int64_t{64}},
                      {"tensor", tensor},
                      {"note", std::string("nothing of the checkpoint")}};
  auto report = std::make_shared<CheckReport>();
  report->findings = {finding};
  snapshot->report = report;
  snapshot->finding = 0;
  snapshot->tensor = TensorId{0};
  Driver driver(snapshot);
  driver.frame();
  auto commands = driver.click("evidence/file");
  auto* bytes = only<BytesCommand>(commands);
  REQUIRE(bytes != nullptr);
  CHECK(bytes->file == file);
  CHECK(bytes->at == 64);
  commands = driver.click("evidence/tensor");
  auto* select = only<SelectTensorCommand>(commands);
  REQUIRE(select != nullptr);
  CHECK(select->fqn == tensor);
  CHECK(driver.click("evidence/note").empty());
}

TEST_CASE(
    "Enter in the filter goes to the first tensor that passes, and not to one of the list before") {
  auto snapshot = make::demo();
  snapshot->order = std::make_shared<std::vector<std::uint32_t>>(std::vector<std::uint32_t>{7, 9});
  snapshot->filter = "norm";
  Driver driver(snapshot, {1280, 720}, 1);
  driver.frame();
  driver.click("filter");
  for (const char* text : {"other", "norm"}) {
    driver.desk.filter = text;
    driver.frame();
    const auto commands = driver.frame({{Key::kEnter}});
    const bool goes = std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
      const auto* select = std::get_if<SelectTensorCommand>(&command);
      return select != nullptr && select->fqn == snapshot->checkpoint->fqn(TensorId{7});
    });
    CHECK(goes == (driver.desk.filter == "norm"));
  }
}

TEST_CASE("a key that is not possible now says why") {
  auto snapshot = make::healthy();
  snapshot->tensor.reset();
  snapshot->chunk.reset();
  Driver driver(snapshot);
  driver.frame();
  driver.frame({{Key::kV, true, true, false}});
  CHECK(driver.desk.toast.find("choose a tensor") != std::string::npos);
}
