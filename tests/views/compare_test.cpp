// The view of a comparison, driven without a window.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"

using namespace shw;

namespace {

std::shared_ptr<Snapshot> compared(std::size_t tensors) {
  auto snapshot = make::healthy();
  auto both = std::make_shared<verbs::ComparedCheckpoints>();
  both->a = both->b = snapshot->checkpoint;
  both->difference.verdict = EqualityVerdict::kDifferent;
  for (std::size_t i = 0; i < tensors; ++i) {
    TensorDifference one;
    one.fqn = "layer." + std::to_string(i);
    one.kind = DifferenceKind::kValues;
    one.a = one.b = TensorSide{Dtype::kFloat32, {4, 4}, 1};
    one.values = ValueDifference{};
    one.values->compared = 16;
    one.values->cosine = 0.5;
    one.values->first = FirstDifference{{1, 2}, "0", "1"};
    both->difference.tensors.push_back(one);
  }
  snapshot->compared = both;
  snapshot->compared_with = "/runs/8/step_9000";
  return snapshot;
}

template <class T>
const T* lone(const std::vector<Command>& commands) {
  return commands.size() == 1 ? std::get_if<T>(&commands[0]) : nullptr;
}

}  // namespace

TEST_CASE("another checkpoint is compared by its path, without its values or with them") {
  Driver driver(make::healthy());
  driver.frame();
  driver.frame({{Key::kK, true, false, false}});
  CHECK(driver.desk.compare_open);
  CHECK(driver.click("compare/go").empty());  // without a path there is nothing to compare with
  driver.desk.compare_path = "/runs/8/step_9000";
  auto commands = driver.click("compare/go");
  REQUIRE(lone<CompareCommand>(commands));
  CHECK(lone<CompareCommand>(commands)->path == "/runs/8/step_9000");
  CHECK_FALSE(lone<CompareCommand>(commands)->data);
  commands = driver.click("compare/data");
  REQUIRE(lone<CompareCommand>(commands));
  CHECK(lone<CompareCommand>(commands)->data);
  driver.click("compare/close");
  CHECK_FALSE(driver.desk.compare_open);
}

TEST_CASE("a click and keys go from difference to difference, around the ends") {
  auto snapshot = compared(3);
  Driver driver(snapshot);
  driver.frame();
  KeyPress next{Key::kF8, true, false, false}, previous{Key::kF8, true, true, false};
  auto commands = driver.frame({next});
  REQUIRE(lone<DifferenceCommand>(commands));
  CHECK(lone<DifferenceCommand>(commands)->index == 0);
  commands = driver.frame({previous});
  CHECK(lone<DifferenceCommand>(commands)->index == 2);
  CHECK(driver.desk.compare_open);
  commands = driver.click("compare/row/1");
  REQUIRE(lone<DifferenceCommand>(commands));
  CHECK(lone<DifferenceCommand>(commands)->index == 1);
  snapshot->difference = 1;
  driver.show(std::make_shared<Snapshot>(*snapshot));
  commands = driver.frame({next});
  CHECK(lone<DifferenceCommand>(commands)->index == 2);
}

TEST_CASE("of a hundred thousand differences only what is seen is drawn") {
  auto vertices_of = [](std::size_t tensors) {
    Driver driver(compared(tensors));
    driver.desk.compare_open = true;
    driver.frame();
    driver.frame();
    return ImGui::GetDrawData()->TotalVtxCount;
  };
  int few = vertices_of(100);
  CHECK(vertices_of(100'000) < few * 2);
}

TEST_CASE("another checkpoint is not hidden behind the question what to compare it with") {
  Driver driver(compared(3));
  driver.desk.compare_open = true;
  driver.frame();
  driver.frame();
  CHECK(driver.desk.compare_open);
  auto other = make::demo();
  other->compared = nullptr;
  driver.show(other);
  driver.frame();
  CHECK_FALSE(driver.desk.compare_open);
  driver.desk.compare_open = true;  // asked for again
  driver.frame();
  CHECK(driver.desk.compare_open);
}
