// Navigation in the values of a tensor.
#include <doctest/doctest.h>

#include "make/snapshots.h"
#include "views/driver.h"
#include "views/panels/values_parts.h"

using namespace shw;

namespace {

verbs::ValuesRequest ask_of(std::vector<verbs::DimRange> dims) {
  verbs::ValuesRequest ask;
  ask.dims = std::move(dims);
  return ask;
}

}  // namespace

TEST_CASE("values: an index moves the window, and one outside the shape is refused") {
  const Extents shape{4, 8192, 640};
  const auto now = ask_of({{0, 1, false}, {0, 8192, true}, {0, 640, true}});
  auto there = parse_index("[3, 4096, 32]", shape, now);
  REQUIRE(there.has_value());
  CHECK(there->dims[0] == verbs::DimRange{3, 4, false});
  CHECK(there->dims[1].first == 4096);
  CHECK(there->dims[1].shown);
  CHECK(there->dims[2].first == 32);
  CHECK_FALSE(parse_index("[4, 0, 0]", shape, now).has_value());
  CHECK_FALSE(parse_index("[0, 0, 0, 0]", shape, now).has_value());
  CHECK_FALSE(parse_index("[0, x]", shape, now).has_value());
  CHECK_FALSE(parse_index("99999999999999999999", shape, now).has_value());
  CHECK_FALSE(parse_index("", shape, now).has_value());
  // At the end the window stays inside the tensor.
  CHECK(parse_index("0 8191 639", shape, now)->dims[1].last == 8192);
}

TEST_CASE("values: the table is copied as Python that numpy reads") {
  auto snapshot = make::with_values(make::demo());
  verbs::SliceValues values = *snapshot->values->values;
  values.table_rows = 1;
  values.table_columns = 3;
  values.table = {"1.5", "NaN", "-Infinity"};
  const std::string text = numpy_text(*snapshot->checkpoint, values);
  CHECK(text.find("np.array([[1.5, np.nan, -np.inf]], dtype=np.") == 0);
  CHECK(text.find(std::string(snapshot->checkpoint->fqn(values.tensor))) != std::string::npos);
}

TEST_CASE("values: Next NaN asks for the next one of the whole slice") {
  auto snapshot = make::with_values(make::demo());
  Driver driver(snapshot);
  driver.desk.values.open = true;
  driver.frame();
  driver.frame();
  REQUIRE(driver.marks.items.contains("values/nan"));
  auto commands = driver.click("values/nan");
  REQUIRE_FALSE(commands.empty());
  const auto* asked = std::get_if<ValuesCommand>(&commands.front());
  REQUIRE(asked != nullptr);
  CHECK(asked->next == verbs::SearchedValue::kNan);
  CHECK_FALSE(driver.marks.items.contains("values/difference"));  // nothing is compared
}

TEST_CASE("values: Save .npy asks for a file, and the file is announced once") {
  auto snapshot = make::with_values(make::demo());
  Driver driver(snapshot);
  driver.desk.values.open = true;
  driver.frame();
  driver.frame();
  auto commands = driver.click("values/npy");
  REQUIRE_FALSE(commands.empty());
  CHECK(to_text(commands.front()) == "place npy");
  driver.show(make::with_place(*snapshot, verbs::NewFile::kNpy, "/runs/step-w.npy"));
  commands = driver.click("save/write");
  REQUIRE_FALSE(commands.empty());
  const auto* save = std::get_if<SaveValuesCommand>(&commands.front());
  REQUIRE(save != nullptr);
  CHECK(save->kind == verbs::ValuesFile::kNpy);
  CHECK(save->path == "/runs/step-w.npy");
  auto after = std::make_shared<Snapshot>(*snapshot);
  after->saved_values = std::make_shared<const verbs::SavedValues>(
      verbs::SavedValues{"/runs/step-w.npy", 192, 4, 8, "float32", 0});
  driver.show(after);
  driver.frame();
  CHECK(driver.desk.toast.find("/runs/step-w.npy") != std::string::npos);
  driver.desk.toast.clear();
  driver.frame();
  CHECK(driver.desk.toast.empty());
}
