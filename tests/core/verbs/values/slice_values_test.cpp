#include "core/verbs/values/slice_values.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"
#include "core/tensor/element_text.h"
#include "core/tensor/statistics_counter.h"

using namespace shw;
using namespace shw::verbs;

namespace {

// A safetensors file of one float32 tensor; elements that are not given stay a hole, which reads as
// zeros.
std::string write_floats(const TemporaryFolder& folder, std::int64_t rows, std::int64_t columns,
                         const std::vector<std::pair<std::int64_t, float>>& said) {
  std::int64_t bytes = rows * columns * 4;
  std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(rows) + "," +
                       std::to_string(columns) + "],\"data_offsets\":[0," + std::to_string(bytes) +
                       "]}}";
  std::uint64_t length = header.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &length, 8);
  std::string path = folder / "model.safetensors";
  put(path, head + header);
  std::filesystem::resize_file(path, 8 + length + static_cast<std::uint64_t>(bytes));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (auto [at, value] : said) {
    file.seekp(static_cast<std::streamoff>(8 + length) + at * 4);
    file.write(reinterpret_cast<const char*>(&value), 4);
  }
  return path;
}

std::shared_ptr<const Checkpoint> looked_at(const std::string& path) {
  auto checkpoint = open_checkpoint(path);
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  return *checkpoint;
}

constexpr float kNan = __builtin_nanf(""), kInfinity = __builtin_inff();

}  // namespace

TEST_CASE("the numbers of every small slice are those of the whole tensor, read at once") {
  std::size_t looked = 0;
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto checkpoint = looked_at(folder + "/ckpt");
    for (std::uint32_t t = 0; t < checkpoint->tensor_count(); t += 3) {
      ExtentsView shape = checkpoint->shape(TensorId{t});
      if (shape.size() > 2 || volume(shape).value_or(0) == 0) continue;
      CAPTURE(checkpoint->fqn(TensorId{t}));
      auto whole = read_tensor(*checkpoint, TensorId{t});
      auto values = slice_values(*checkpoint, TensorId{t}, {});
      REQUIRE(whole.has_value());
      REQUIRE_MESSAGE(values.has_value(), values.error().message);
      CHECK(values->is_all());
      CHECK(values->missing == 0);
      StatisticsCounter counter;
      counter.begin(whole->dtype);
      counter.add(whole->bytes);
      CHECK(values->statistics == statistics_of(counter.take()));
      bool across = values->row_dim < values->column_dim;
      for (std::int64_t r = 0; r < values->table_rows; ++r) {
        for (std::int64_t c = 0; c < values->table_columns; ++c) {
          std::int64_t i = across ? r * values->columns + c : c * values->rows + r;
          CHECK(values->table[static_cast<std::size_t>(r * values->table_columns + c)] ==
                element_text(whole->dtype, whole->bytes, static_cast<std::size_t>(i)));
        }
      }
      ++looked;
    }
  }
  CHECK(looked > 50);
}

TEST_CASE("what is not finite is never decimated away, and every cell has its largest magnitude") {
  TemporaryFolder folder;
  auto path = write_floats(folder, 1000, 700,
                           {{0, -3},
                            {5, 2},
                            {700 * 400 + 350, kNan},
                            {700 * 999 + 699, kInfinity},
                            {700 * 500, -kInfinity},
                            {700 * 10 + 699, 8}});
  auto checkpoint = looked_at(path);
  auto values = slice_values(*checkpoint, TensorId{0}, {});
  REQUIRE(values.has_value());
  CHECK(values->is_all());
  CHECK(values->statistics.nan == 1);
  CHECK(values->statistics.infinite == 2);
  CHECK(values->statistics.greatest == "Infinity");
  CHECK(values->greatest == 8);
  CHECK(values->cells[0].value == -3);
  std::size_t nan = 0, infinite = 0;
  for (const ValueCell& cell : values->cells) {
    nan += cell.nan;
    infinite += cell.infinite;
    CHECK(cell.seen);
  }
  CHECK(nan == 1);
  CHECK(infinite == 2);
  CHECK(values->cells.back().infinite);

  // Transposed, the same cells are in the other order.
  ValuesRequest turned = values->ask;
  turned.transposed = true;
  auto other = slice_values(*checkpoint, TensorId{0}, turned);
  REQUIRE(other.has_value());
  CHECK(other->rows == 700);
  CHECK(other->statistics == values->statistics);
  CHECK(other->table[1] == values->table[static_cast<std::size_t>(values->table_columns)]);

  // A window of the transposed values.
  auto window = slice_values(*checkpoint, TensorId{0}, *parse_values_request("[400:402, 350:353]"));
  REQUIRE(window.has_value());
  CHECK(window->table == std::vector<std::string>{"NaN", "0", "0", "0", "0", "0"});
  CHECK(window->cells.size() == 6);
}

TEST_CASE("a look at a large tensor is bounded and says so") {
  TemporaryFolder folder;
  std::vector<std::pair<std::int64_t, float>> said;
  for (auto [rows, columns] : {std::pair<std::int64_t, std::int64_t>{100'000, 600},
                               {1, 40'000'000},
                               {9'000'000, 3},
                               {300, 200'000}}) {
    CAPTURE(rows);
    auto checkpoint = looked_at(write_floats(folder, rows, columns, said));
    auto values = slice_values(*checkpoint, TensorId{0},
                               *parse_values_request("[0:" + std::to_string(rows) +
                                                     ", 0:" + std::to_string(columns) + "]"));
    REQUIRE(values.has_value());
    CHECK_FALSE(values->is_all());
    CHECK(values->looked <= kMaxLooked * 5 / 4);
    CHECK(values->looked > kMaxLooked / 8);
    CHECK(static_cast<std::uint64_t>(values->looked) == values->statistics.elements);
    for (const ValueCell& cell : values->cells) REQUIRE(cell.seen);
  }
}

TEST_CASE("elements that cannot be read are counted and marked, the others are shown") {
  TemporaryFolder folder;
  std::string source = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";
  std::filesystem::copy(source, folder / "ckpt");
  auto checkpoint = looked_at(folder / "ckpt");
  TensorId tensor{0};
  while (checkpoint->chunks(tensor).size() < 2 || checkpoint->shape(tensor).size() != 2)
    tensor = TensorId{static_cast<std::uint32_t>(tensor) + 1};
  ChunkId first = checkpoint->chunks(tensor)[0];
  std::filesystem::remove(folder /
                          ("ckpt/" + checkpoint->file(checkpoint->item(first)->file).path));
  auto values = slice_values(*checkpoint, tensor, {});
  REQUIRE(values.has_value());
  CHECK(values->unread == *volume(checkpoint->sizes(first)));
  CHECK(values->error.has_value());
  CHECK(values->cells[0].unread);
  CHECK(static_cast<std::int64_t>(values->statistics.elements) ==
        *volume(checkpoint->shape(tensor)) - values->unread);
}

TEST_CASE("slices are written and read as Python writes them, and wrong ones are refused") {
  for (const char* text : {"[]", "[17, 0:4096, 0:1280]", "[0:3]", "[0:2, 1:3] transposed"}) {
    CAPTURE(text);
    auto ask = parse_values_request(text);
    REQUIRE(ask.has_value());
    CHECK(to_text(*ask) == text);
  }
  for (const char* text : {"", "[", "1:2", "[a]", "[1:]", "[1,,2]", "[9223372036854775808]"})
    CHECK_FALSE(parse_values_request(text).has_value());
  TemporaryFolder folder;
  auto checkpoint = looked_at(write_floats(folder, 4, 5, {}));
  for (const char* text : {"[0:4]", "[4, 0:5]", "[-1, 0:5]", "[2:2, 0:5]", "[3:1, 0:5]",
                           "[9223372036854775807, 0:5]"}) {
    CAPTURE(text);
    CHECK_FALSE(slice_values(*checkpoint, TensorId{0}, *parse_values_request(text)).has_value());
  }
  Progress progress;
  progress.cancel();
  auto stopped = slice_values(*checkpoint, TensorId{0}, {}, &progress);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
}
