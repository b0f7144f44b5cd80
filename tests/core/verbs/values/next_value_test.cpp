// The search for the next NaN or difference of a slice, next to a loop over all elements.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/formats/open.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/values/next_value.h"
#include "core/verbs/values/slice_values.h"

using namespace shw;
using verbs::SearchedValue;
using verbs::ValuePlace;

namespace {

constexpr std::int64_t kRows = 23, kColumns = 37;

void write_tensor(const std::string& folder, const std::string& dtype, const std::string& shape,
                  std::span<const std::byte> bytes) {
  const std::string header = R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape +
                             R"(,"data_offsets":[0,)" + std::to_string(bytes.size()) + "]}}";
  std::filesystem::create_directory(folder);
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  const auto length = static_cast<std::uint64_t>(header.size());
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header;
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::string floats_in(const std::string& folder, const std::vector<float>& values) {
  write_tensor(folder, "F32", "[2,23,37]", std::as_bytes(std::span(values)));
  return folder;
}

std::vector<float> ones() {
  return std::vector<float>(static_cast<std::size_t>(2 * kRows * kColumns), 1);
}

std::size_t at(std::int64_t page, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>((page * kRows + row) * kColumns + column);
}

struct Slice {
  std::shared_ptr<const Checkpoint> checkpoint;
  TensorId tensor{};
  verbs::SliceValues values;
};

Slice slice_of(const std::string& folder, verbs::ValuesRequest ask) {
  auto opened = open_checkpoint(folder);
  REQUIRE(opened.has_value());
  Slice slice{*opened, *(*opened)->find("w"), {}};
  auto values = verbs::slice_values(*slice.checkpoint, slice.tensor, ask);
  REQUIRE(values.has_value());
  slice.values = std::move(*values);
  return slice;
}

// The second page; its table shows a part of it.
verbs::ValuesRequest page(bool transposed) {
  verbs::ValuesRequest ask;
  ask.dims = {{1, 2, false}, {4, 9, true}, {5, 20, true}};
  ask.transposed = transposed;
  return ask;
}

}  // namespace

TEST_CASE("next value: every start finds what a loop over all elements finds") {
  TemporaryFolder folder;
  std::vector<float> from = ones(), to;
  for (auto [r, c] : {std::pair{0, 0}, {3, 36}, {4, 0}, {11, 17}, {22, 36}})
    from[at(1, r, c)] = NAN;
  from[at(0, 7, 7)] = NAN;  // of another slice
  to = from;
  from[at(1, 20, 1)] = 0.0f;
  to[at(1, 20, 1)] = -0.0f;  // other bits, no distance
  to[at(1, 9, 30)] = 2;
  const std::string a = floats_in(folder / "a", from), b = floats_in(folder / "b", to);
  auto other = open_checkpoint(b);
  REQUIRE(other.has_value());
  for (const bool transposed : {false, true}) {
    const Slice slice = slice_of(a, page(transposed));
    const std::int64_t rows = transposed ? kColumns : kRows,
                       columns = transposed ? kRows : kColumns;
    for (const SearchedValue sought : {SearchedValue::kNan, SearchedValue::kDifference}) {
      const auto is_sought = [&](std::int64_t place) {
        const std::int64_t r = place / columns, c = place % columns;
        const std::size_t i = transposed ? at(1, c, r) : at(1, r, c);
        return sought == SearchedValue::kNan ? std::isnan(from[i])
                                             : std::memcmp(&from[i], &to[i], sizeof(float)) != 0;
      };
      for (std::int64_t start = 0; start < rows * columns; start += 5) {
        std::int64_t expected = start;
        while (!is_sought(expected)) expected = (expected + 1) % (rows * columns);
        auto next = verbs::next_value(*slice.checkpoint, slice.tensor, slice.values,
                                      {start / columns, start % columns}, sought, other->get());
        REQUIRE(next.has_value());
        REQUIRE(next->place.has_value());
        CHECK(*next->place == ValuePlace{expected / columns, expected % columns});
      }
    }
  }
}

TEST_CASE("next value: a row longer than one reading is searched to its end") {
  TemporaryFolder folder;
  const std::int64_t columns = verbs::kMaxLooked + 1000;
  std::vector<std::uint16_t> halves(static_cast<std::size_t>(2 * columns), 0x3C00);
  halves.back() = 0x7E00;
  write_tensor(folder / "wide", "F16", "[2," + std::to_string(columns) + "]",
               std::as_bytes(std::span(halves)));
  const Slice slice = slice_of(folder / "wide", {});
  auto next = verbs::next_value(*slice.checkpoint, slice.tensor, slice.values, {0, 3},
                                SearchedValue::kNan, nullptr);
  REQUIRE(next.has_value());
  REQUIRE(next->place.has_value());
  CHECK(*next->place == ValuePlace{1, columns - 1});
}

TEST_CASE("next value: a session goes on from what it found, and says when there is no other") {
  TemporaryFolder folder;
  std::vector<float> values = ones();
  values[at(0, 2, 3)] = values[at(0, 22, 36)] = NAN;
  Session session;
  session.apply(OpenCommand{floats_in(folder / "a", values)});
  session.wait();
  session.apply(SelectTensorCommand{"w"});
  verbs::ValuesRequest ask;
  ask.dims = {{0, 1, false}, {0, kRows, true}, {0, kColumns, true}};
  session.apply(ValuesCommand{false, ask});
  session.wait();  // a newer request would take its place
  auto next = [&] {
    session.apply(ValuesCommand{false, {}, SearchedValue::kNan});
    session.wait();
    auto look = session.snapshot()->values;
    REQUIRE(look != nullptr);
    REQUIRE(look->values.has_value());
    return look;
  };
  CHECK(next()->values->found == ValuePlace{2, 3});
  // The last element is in sight, though the window cannot begin there.
  auto last = next();
  CHECK(last->values->found == ValuePlace{22, 36});
  CHECK(last->values->first_column == kColumns - verbs::kMaxTableColumns);
  CHECK(next()->values->found == ValuePlace{2, 3});

  ask.dims[0] = {1, 2, false};
  session.apply(ValuesCommand{false, ask});
  session.wait();  // a newer request would take its place
  CHECK(next()->not_found == "There is no NaN in this slice.");
  CHECK(session.snapshot()->values->values->ask == ask);
}
