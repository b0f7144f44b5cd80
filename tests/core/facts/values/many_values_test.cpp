#include "core/facts/values/many_values.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <random>
#include <set>

#include "core/facts/values/value_reader.h"
#include "core/rules/make_contents.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::vector<bool> found_in(const Checkpoint& checkpoint, std::size_t few) {
  const CheckInput input{checkpoint, nullptr, nullptr, {}, {}, {}, {}};
  std::vector<TensorId> tensors;
  for (TensorId tensor : checkpoint.tensors()) tensors.push_back(tensor);
  return have_more_values_than(input, tensors, few);
}

// Reads the whole tensor and counts its values.
bool has_more(const Checkpoint& checkpoint, TensorId tensor, std::size_t few) {
  auto values = read_tensor(checkpoint, tensor);
  REQUIRE(values.has_value());
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < count_in(*values); ++i)
    seen.insert(std::bit_cast<std::uint64_t>(value_at(values->dtype, values->bytes, i)));
  return seen.size() > few;
}

}  // namespace

TEST_CASE("tensors with more than a few values are those that have them when read whole") {
  TemporaryFolder folder;
  std::mt19937 random(3);
  test::MadeModel model;
  std::size_t many = 0;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 40);
    const Dtype dtype = random() % 2 == 0 ? Dtype::kFloat32 : Dtype::kBfloat16;
    const std::size_t different = 1 + random() % 24, from = random() % 3;
    test::Numbers values;
    for (std::int64_t k = 0; k < rows * 3; ++k) {
      // If different values come late, the beginning does not show them.
      const bool is_late = from != 0 && k < rows * 2;
      values.push_back(is_late ? 1 : 1 + static_cast<double>(random() % different));
    }
    model.add("layers." + std::to_string(i) + ".w", dtype, {rows, 3}, std::move(values));
    for (std::int64_t row = 0; row < rows;) {
      const std::int64_t length =
          std::min<std::int64_t>(rows - row, 1 + static_cast<std::int64_t>(random() % 9));
      model.tensors.back().tiles.push_back(
          {{row, 0}, {length, 3}, static_cast<std::uint32_t>(random() % 5)});
      row += length;
    }
  }
  auto checkpoint = test::made(folder / "ck", model);
  const std::vector<bool> found = found_in(*checkpoint, 16);
  REQUIRE(found.size() == 60);
  for (std::uint32_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == has_more(*checkpoint, TensorId{i}, 16));
    many += found[i] ? 1 : 0;
  }
  CHECK(many > 3);
  CHECK(many < 57);
}

TEST_CASE("what cannot be read of a tensor says nothing for it") {
  TemporaryFolder folder;
  test::MadeModel model;
  for (const char* name : {"a", "b"}) {
    test::Numbers values(40);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    model.add(name, Dtype::kFloat32, {40}, std::move(values));
    model.tensors.back().tiles = {{{0}, {20}, 0}, {{20}, {20}, 1}};
  }
  auto checkpoint = test::made(folder / "ck", model);
  REQUIRE(std::remove((folder / "ck" + "/__0_0.distcp").c_str()) == 0);
  checkpoint = *open_checkpoint(folder / "ck");
  CHECK(found_in(*checkpoint, 16) == std::vector<bool>{true, true});
  CHECK(found_in(*checkpoint, 20) == std::vector<bool>{false, false});
}
