#include "views/map/tile_colours.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/base/natural_order.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/rules/unreadable.h"
#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

template <class C>
const C* command_in(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (const auto* found = std::get_if<C>(&command)) return found;
  }
  return nullptr;
}

KeyPress colour_key(int which) {
  return {static_cast<Key>(static_cast<int>(Key::k1) + which), true, false, false};
}

bool has_text(const Driver& driver, std::string_view part) {
  for (const TextMark& mark : driver.marks.texts) {
    if (mark.text.find(part) != mark.text.npos) return true;
  }
  return false;
}

// Statistics of the first `looked` tiles: one has NaN, one infinity, the others grow.
std::shared_ptr<Snapshot> with_tile_values(std::shared_ptr<Snapshot> snapshot,
                                           std::uint32_t looked) {
  auto values = std::make_shared<verbs::TileValues>(
      verbs::unexamined_tiles(*snapshot->checkpoint, *snapshot->tensor));
  for (std::uint32_t i = 0; i < looked; ++i) {
    auto& tile = values->tiles[i];
    tile.state = verbs::TileNumbers::State::kLooked;
    tile.elements = 100;
    tile.zero = i % 50;
    tile.greatest = 0.5 + i;
    if (i == 3) tile.nan = 7;
    if (i == 4) tile.infinite = 1, tile.greatest = INFINITY;
    if (i == 5) tile.nan = 100, tile.greatest = -1;
  }
  values->done = looked;
  auto of = std::make_shared<TileValuesOf>();
  of->emplace(*snapshot->tensor, values);
  snapshot->tile_values = of;
  return snapshot;
}

}  // namespace

TEST_CASE("every colouring is one key away, and its name is on the picker") {
  Driver driver(make::demo_planned());
  driver.frame();
  for (int which = 1; which < static_cast<int>(kColourings); ++which) {
    driver.frame({colour_key(which)});
    driver.frame();
    driver.frame();
    CHECK(driver.desk.colour_by == static_cast<ColourBy>(which));
    CHECK(has_text(driver, "coloured by " + std::string(name(static_cast<ColourBy>(which)))));
    CHECK(has_text(driver, "not coloured"));
  }
  driver.frame({colour_key(0)});
  driver.frame();
  CHECK(driver.desk.colour_by == ColourBy::kWriter);
  CHECK_FALSE(has_text(driver, "not coloured"));
  driver.click("colour");
  driver.click("colour/file");
  CHECK(driver.desk.colour_by == ColourBy::kFile);
}

TEST_CASE("the picker of colours says less where there is less room, and stays") {
  Driver driver(make::demo_planned(), {1280, 720}, 1);
  driver.frame();
  for (int which = 0; which < static_cast<int>(kColourings); ++which) {
    driver.frame({colour_key(which)});
    driver.frame();
    driver.frame();
    CHECK(driver.marks.items.contains("colour"));
  }
  driver.click("colour");
  driver.click("colour/writer");
  driver.frame();
  CHECK(driver.desk.colour_by == ColourBy::kWriter);
}

TEST_CASE("a file has one colour in all pictures, and many are folded to their number") {
  auto snapshot = make::demo_planned();
  auto digest = make_digest(snapshot);
  const Checkpoint& c = *snapshot->checkpoint;
  auto paint = (*digest->paints)[ColourBy::kFile];
  REQUIRE(paint != nullptr);
  CHECK(paint->title == "64 files");
  const Picture& picture = *digest->picture;
  auto label = [&](const TileSet& tiles, const std::vector<std::uint16_t>& groups,
                   std::uint32_t tile) {
    CHECK(paint->groups[groups[tile]].label == c.file(c.item(tiles.chunk(tile))->file).path);
  };
  for (std::uint32_t t = 0; t < picture.saved->size(); ++t) label(*picture.saved, paint->saved, t);
  REQUIRE(paint->after.size() == picture.after->size());
  for (std::uint32_t t = 0; t < picture.after->size(); ++t) label(*picture.after, paint->after, t);
  std::set<Rgba> colours;
  for (const PaintGroup& group : paint->groups)
    colours.insert(colour_of(group, dark_theme().tiles));
  CHECK(colours.size() > 48);
  CHECK(std::is_sorted(
      paint->groups.begin() + 1, paint->groups.end(),
      [](const PaintGroup& a, const PaintGroup& b) { return natural_less(a.label, b.label); }));

  Driver driver(snapshot);
  driver.frame({colour_key(1)});
  driver.frame();
  driver.frame();
  CHECK(has_text(driver, "64 files"));
  CHECK(driver.marks.items.contains("legend/1"));
  CHECK_FALSE(driver.marks.items.contains("legend/2"));
  CHECK(driver.marks.items.contains("legend/64"));
}

TEST_CASE("tiles that a finding names are out by its letter, and the rest is quiet") {
  auto snapshot = make::damaged();
  auto digest = make_digest(snapshot);
  auto paint = (*digest->paints)[ColourBy::kFinding];
  REQUIRE(paint != nullptr);
  REQUIRE(paint->groups.size() > 1);
  CHECK(paint->groups[1].sign == "A");
  CHECK(paint->groups[1].weight > paint->groups[0].weight);
  std::uint32_t tiles = 0;
  for (const PaintGroup& group : paint->groups) tiles += group.tiles;
  CHECK(tiles == digest->picture->saved->size());
  // Overlapping boxes name the tiles that claim them, and no others.
  const Finding* boxed = nullptr;
  for (const Finding& finding : snapshot->report->findings) {
    for (const auto& [label, value] : finding.evidence) {
      if (std::holds_alternative<std::vector<Box>>(value) && finding.subjects.size() == 1)
        boxed = &finding;
    }
  }
  REQUIRE(boxed != nullptr);
  Driver driver(snapshot);
  driver.frame({colour_key(2)});
  driver.frame();
  driver.frame();
  CHECK(driver.marks.items.contains("legend/1"));
  CHECK(has_text(driver, paint->groups[1].label));
  auto healthy = make_digest(make::healthy());
  CHECK((*healthy->paints)[ColourBy::kFinding]->title == "no finding names this tensor");
}

TEST_CASE("tiles of a file that was cut off are coloured only where their bytes are gone") {
  constexpr std::uint32_t kTiles = 8, kWhole = 4;
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  // Tile 4 lacks half of its bytes.
  builder.set_directory(memory_directory("cut", {{"__0_0.distcp", Bytes(kWhole * 64 + 32)}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{kTiles * 4, 4});
  for (std::int64_t i = 0; i < kTiles; ++i)
    builder.add_chunk(Extents{i * 4, 0}, Extents{4, 4}, {builder.file("__0_0.distcp"), i * 64, 64});
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->checkpoint = builder.finish();
  snapshot->tensor = TensorId{0};
  Finding finding;
  finding.rule = "short-file";
  finding.severity = Severity::kError;
  finding.subjects = {"__0_0.distcp"};
  const auto named = [&] {
    auto report = std::make_shared<CheckReport>();
    report->findings = {finding};
    snapshot->report = report;
    auto digest = make_digest(snapshot);
    const auto& groups = (*digest->paints)[ColourBy::kFinding]->groups;
    return groups.size() > 1 ? groups[1].tiles : 0;
  };
  CHECK(named() == kTiles);  // an error in a file that can be read concerns all of it
  write_unreadable((kTiles - kWhole) * 16, 1, finding);
  CHECK(named() == kTiles - kWhole);
  const auto paint = (*make_digest(snapshot)->paints)[ColourBy::kFinding];
  for (std::uint32_t t = 0; t < kTiles; ++t) CHECK((paint->saved[t] != 0) == (t >= kWhole));
}

TEST_CASE(
    "tiles in the boxes of a finding about several tensors are those of the tensor it names") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("two", {{"__0_0.distcp", Bytes(512)}}));
  for (const char* name : {"v", "w"}) {
    builder.add_tensor(name, Dtype::kFloat32, Extents{16, 4});
    for (std::int64_t i = 0; i < 4; ++i)
      builder.add_chunk(Extents{i * 4, 0}, Extents{4, 4},
                        {builder.file("__0_0.distcp"), i * 64, 64});
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->checkpoint = builder.finish();
  auto report = std::make_shared<CheckReport>();
  Finding finding{.rule = "chunk-overlap", .severity = Severity::kError};
  finding.subjects = {"v", "w"};
  finding.evidence = {
      {"boxes", std::vector<Box>{{{0, 0}, {4, 4}}, {{12, 0}, {4, 4}}, {{2, 0}, {4, 4}}}},
      {"boxes_in", std::vector<std::string>{"w", "v", "w"}}};
  report->findings = {finding};
  snapshot->report = report;
  const auto named = [&](std::uint32_t tensor) {
    snapshot->tensor = TensorId{tensor};
    const auto paint = (*make_digest(snapshot)->paints)[ColourBy::kFinding];
    std::vector<bool> lit;
    for (std::uint32_t t = 0; t < 4; ++t) lit.push_back(paint->saved[t] != 0);
    return lit;
  };
  CHECK(named(0) == std::vector<bool>{false, false, false, true});
  CHECK(named(1) == std::vector<bool>{true, true, false, false});
}

TEST_CASE("a statistic is asked for once, drawn as far as it is known, and never as zero") {
  auto snapshot = make::demo_planned();
  Driver driver(snapshot);
  driver.frame();
  auto commands = driver.frame({colour_key(3)});
  const auto* asked = command_in<TileValuesCommand>(commands);
  REQUIRE(asked != nullptr);
  CHECK(asked->fqn == snapshot->checkpoint->fqn(*snapshot->tensor));
  CHECK_FALSE(asked->stop);
  CHECK(command_in<TileValuesCommand>(driver.frame()) == nullptr);

  driver.show(with_tile_values(make::demo_planned(), 40));
  driver.frame();
  driver.frame();
  auto digest = make_digest(with_tile_values(make::demo_planned(), 40));
  for (ColourBy by : {ColourBy::kNonFinite, ColourBy::kGreatest, ColourBy::kZeros}) {
    auto paint = (*digest->paints)[by];
    REQUIRE(paint != nullptr);
    CHECK(paint->looked == 40);
    CHECK(paint->groups[0].label == "not checked");
    CHECK(paint->groups[0].tiles == 24);
    for (std::uint32_t t = 40; t < 64; ++t) CHECK(paint->saved[t] == 0);
    for (std::uint32_t t = 0; t < 40; ++t) CHECK(paint->saved[t] != 0);
    CHECK(colour_of(paint->groups[0], dark_theme().tiles) !=
          colour_of(paint->groups[2], dark_theme().tiles));
  }
  auto greatest = (*digest->paints)[ColourBy::kGreatest];
  CHECK(greatest->groups[greatest->saved[4]].label == "infinite");
  CHECK(greatest->groups[greatest->saved[5]].label == "only NaN");
  CHECK(greatest->from == "0.5");
  CHECK(greatest->to == "39.5");
  CHECK(greatest->saved[39] > greatest->saved[6]);
  auto odd = (*digest->paints)[ColourBy::kNonFinite];
  CHECK(odd->groups[odd->saved[0]].label == "none");
  CHECK(odd->saved[5] > odd->saved[3]);
  CHECK(has_text(driver, "40 of 64"));
  CHECK(driver.marks.items.contains("legend/scale"));
}

TEST_CASE("another colouring calls the look at tiles off, and another tensor is read again") {
  auto snapshot = with_tile_values(make::demo_planned(), 10);
  Driver driver(snapshot);
  driver.frame({colour_key(4)});
  driver.frame();
  auto commands = driver.frame({colour_key(1)});
  for (Command& command : driver.frame()) commands.push_back(std::move(command));
  const auto* stopped = command_in<TileValuesCommand>(commands);
  REQUIRE(stopped != nullptr);
  CHECK(stopped->stop);
  driver.frame({colour_key(4)});
  auto other = std::make_shared<Snapshot>(*snapshot);
  other->tensor = TensorId{0};
  driver.show(other);
  commands = driver.frame();
  const auto* asked = command_in<TileValuesCommand>(commands);
  REQUIRE(asked != nullptr);
  bool small = verbs::unexamined_tiles(*other->checkpoint, TensorId{0}).bytes <= 64u << 20;
  CHECK(asked->stop == !small);
}

TEST_CASE("one tile that holds NaN among a hundred thousand keeps a pixel") {
  std::int64_t side = 320;
  TileSet tiles(Extents{side * 16, side * 16});
  for (std::int64_t i = 0; i < side * side; ++i)
    tiles.add(Extents{i / side * 16, i % side * 16}, Extents{16, 16}, 0, TileStatus::kFine,
              ChunkId{static_cast<std::uint32_t>(i)});
  tiles.seal();
  std::vector<std::uint16_t> groups(tiles.size(), 0);
  auto odd = static_cast<std::uint32_t>(side * 200 + 123);
  groups[odd] = 1;
  TileWeights weights{&groups, {0, 5}};
  for (double pixels : {0.0005, 0.004, 0.02, 0.1}) {
    int extent = static_cast<int>(std::max(1.0, static_cast<double>(side * 16) * pixels));
    TileView view{0, 0, pixels, pixels, extent, extent};
    TileLayout layout = layout_tiles(tiles, {0, 1, {0, 0}}, view, weights);
    CHECK(std::count(layout.raster.begin(), layout.raster.end(), odd + 1) >= 1);
  }
}

TEST_CASE("the legend fits where the desktop does, in every colouring") {
  for (ImVec2 size : {ImVec2{1280, 720}, ImVec2{1440, 900}}) {
    for (auto snapshot : {with_tile_values(make::demo_planned(), 20), make::damaged()}) {
      Driver driver(snapshot, size, 1);
      for (int which = 1; which < static_cast<int>(kColourings); ++which) {
        driver.frame({colour_key(which)});
        driver.frame();
        driver.frame();
        CAPTURE(which);
        for (const std::string& fault : driver.text_faults()) FAIL_CHECK(fault);
      }
    }
  }
}

TEST_CASE("a running job is paused by F9, says what is, and goes on by the same key") {
  Driver driver(make::demo_planned());
  JobState job;
  job.running = true;
  job.title = "Repairing";
  job.phase = Phase::kCopying;
  job.done = 3'100'000'000;
  job.total = 10'100'000'000;
  job.in_bytes = true;
  driver.show(make::demo_planned(), job);
  driver.frame();
  CHECK(command_in<PauseCommand>(driver.frame({{Key::kF9}})) != nullptr);
  CHECK(command_in<PauseCommand>(driver.click("job/pause")) != nullptr);
  job.paused = true;
  driver.show(make::demo_planned(), job);
  driver.frame();
  CHECK(command_in<ContinueCommand>(driver.frame({{Key::kF9}})) != nullptr);
  CHECK(command_in<ContinueCommand>(driver.click("job/pause")) != nullptr);
  CHECK(has_text(driver, "paused after 3.10 GB of 10.1 GB"));
}
