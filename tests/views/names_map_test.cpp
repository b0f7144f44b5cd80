// The map of names between two programs, driven without a window.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/verdict.h"

using namespace shw;

namespace {

template <class T>
const T* only_command(const std::vector<Command>& commands) {
  return commands.size() == 1 ? std::get_if<T>(&commands[0]) : nullptr;
}

constexpr KeyPress kMapKey{Key::kM, true, true, false};

}  // namespace

TEST_CASE("a map of names opens with its comparison, on the row that differs") {
  Driver driver(make::with_names(make::healthy()));
  driver.frame();
  CHECK(driver.desk.names.open);
  CHECK(driver.desk.names.row == 2u);
  driver.frame({{Key::kEscape}});
  CHECK_FALSE(driver.desk.names.open);
  driver.frame();
  CHECK_FALSE(driver.desk.names.open);  // the same comparison does not open it again
  driver.frame({kMapKey});
  CHECK(driver.desk.names.open);
}

TEST_CASE(
    "a row of the map of names unfolds, and its tensor of the open checkpoint is a way there") {
  auto snapshot = make::with_names(make::healthy());
  Driver driver(snapshot);
  driver.frame();
  driver.click("names/row/0");
  REQUIRE(driver.desk.names.row == 0u);
  driver.frame();
  CHECK(driver.marks.items.contains("names/from/0/0"));
  // Names of the other checkpoint are not links.
  CHECK_FALSE(driver.marks.items.contains("names/to/0/0"));
  auto commands = driver.click("names/from/0/0");
  REQUIRE(only_command<SelectTensorCommand>(commands));
  CHECK(only_command<SelectTensorCommand>(commands)->fqn ==
        snapshot->paired->rows[0].tensors[0].from[0]);
  CHECK_FALSE(driver.desk.names.open);
}

TEST_CASE("another tensor of the list is shown in place of the map of names") {
  auto snapshot = make::with_names(make::healthy());
  snapshot->tensor = TensorId{0};
  Driver driver(snapshot);
  driver.frame();
  REQUIRE(driver.desk.names.open);
  auto other = std::make_shared<Snapshot>(*snapshot);
  other->tensor = TensorId{1};
  driver.show(other);
  driver.frame();
  CHECK_FALSE(driver.desk.names.open);
}

TEST_CASE("a reference of another program is compared when its map is asked for") {
  auto snapshot = make::healthy();
  snapshot->options.against = "/runs/8/hf";
  Driver driver(snapshot);
  driver.frame();
  auto commands = driver.frame({kMapKey});
  REQUIRE(only_command<CompareCommand>(commands));
  CHECK(only_command<CompareCommand>(commands)->path == "/runs/8/hf");
  driver.show(make::with_names(std::make_shared<Snapshot>(*snapshot)));
  driver.frame();
  CHECK(driver.desk.names.open);
}

TEST_CASE("of a map of names with 100,000 rows only what is seen is drawn") {
  auto vertices_of = [](std::size_t rows) {
    Driver driver(make::with_names(make::healthy(), rows));
    driver.frame();
    driver.frame();
    return ImGui::GetDrawData()->TotalVtxCount;
  };
  const int few = vertices_of(100);
  CHECK(vertices_of(100'000) < few * 2);
}

TEST_CASE("a comparison of two programs says what the open one has in place of a tensor") {
  auto snapshot = make::with_names(make::healthy());
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = snapshot->checkpoint;
  both->difference.verdict = EqualityVerdict::kDifferent;
  TensorDifference one;
  one.fqn = "decoder.layers.kind2.weight";
  one.kind = DifferenceKind::kValues;
  one.a = one.b = TensorSide{Dtype::kFloat32, {2, 64, 64}, 1};
  both->difference.tensors = {one};
  snapshot->compared = both;
  snapshot->difference = 0;
  Driver driver(snapshot);
  driver.desk.compare_open = true;
  driver.marks.wants_texts = true;
  driver.frame();
  driver.frame();
  const std::string& here = snapshot->paired->rows[2].tensors[0].from[0];
  const bool is_named =
      std::any_of(driver.marks.texts.begin(), driver.marks.texts.end(), [&](const TextMark& text) {
        return text.text.find(here.substr(here.size() - 12)) != std::string::npos;
      });
  CHECK(is_named);
}
