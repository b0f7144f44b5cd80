#include "core/verbs/values/save_values.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/faulty_store.h"
#include "core/fixtures.h"
#include "core/io/store.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;

namespace {

// A safetensors file of one tensor "w".
std::string write_saved_tensor(const TemporaryFolder& folder, const std::string& dtype,
                               const std::string& shape, std::string_view elements) {
  const std::string header = "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
                             ",\"data_offsets\":[0," + std::to_string(elements.size()) + "]}}";
  const std::uint64_t length = header.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &length, 8);
  std::string path = folder / "model.safetensors";
  put(path, head + header + std::string(elements));
  return path;
}

template <class T>
std::string bytes_of_numbers(std::initializer_list<T> numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), std::data(numbers), bytes.size());
  return bytes;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t files_in(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

struct SavedCase {
  TemporaryFolder folder;
  VerbOptions options;
  Opened opened;

  SavedCase(const std::string& dtype, const std::string& shape, std::string_view elements) {
    options.checkpoint = write_saved_tensor(folder, dtype, shape, elements);
    auto result = open(options);
    REQUIRE(result.has_value());
    opened = std::move(*result);
  }
  // Cuts bytes off the end of the file.
  void cut(std::uint64_t bytes) {
    std::filesystem::resize_file(options.checkpoint,
                                 std::filesystem::file_size(options.checkpoint) - bytes);
  }
  Result<SavedValues> save(const std::string& ask, ValuesFile kind, std::string path = {},
                           Store& store = posix_store()) {
    auto parsed = parse_values_request(ask);
    REQUIRE(parsed.has_value());
    return save_values(store, {opened, options, TensorId{0}, *parsed, kind, std::move(path)});
  }
};

}  // namespace

TEST_CASE("saved values: a slice of float32 is an .npy file with its shape and bytes") {
  SavedCase of("F32", "[2,3]", bytes_of_numbers<float>({0, 1, 2, 3, 4, 5}));
  auto saved = of.save("[0:2, 1:3]", ValuesFile::kNpy);
  REQUIRE_MESSAGE(saved.has_value(), saved.error().message);
  const std::string file = text_of_file(saved->path);
  CHECK(file.size() == saved->bytes);
  CHECK(file.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  CHECK(file.find("'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ") == file.npos);
  CHECK(file.find("'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), ") != file.npos);
  const std::size_t begin = file.find('\n') + 1;
  CHECK(begin % 64 == 0);
  CHECK(file.substr(begin) == bytes_of_numbers<float>({1, 2, 4, 5}));
  CHECK(saved->path.ends_with("model.safetensors-w.npy"));
  auto second = of.save("[0:2, 1:3]", ValuesFile::kNpy);
  REQUIRE(second.has_value());
  CHECK(second->path.ends_with("model.safetensors-w-2.npy"));
}

TEST_CASE("saved values: a transposed slice is an .npy file in Fortran order") {
  SavedCase of("F32", "[2,3]", bytes_of_numbers<float>({0, 1, 2, 3, 4, 5}));
  auto saved = of.save("[0:2, 0:3] transposed", ValuesFile::kNpy);
  REQUIRE(saved.has_value());
  const std::string file = text_of_file(saved->path);
  CHECK(file.find("'fortran_order': True, 'shape': (3, 2), ") != file.npos);
  CHECK(saved->rows == 3);
}

TEST_CASE("saved values: bfloat16 becomes float32 of equal value") {
  SavedCase of("BF16", "[2]", bytes_of_numbers<std::uint16_t>({0x3F80, 0xC040}));
  auto saved = of.save("[0:2]", ValuesFile::kNpy);
  REQUIRE(saved.has_value());
  CHECK(saved->dtype == "float32");
  const std::string file = text_of_file(saved->path);
  CHECK(file.find("'shape': (2,), ") != file.npos);
  CHECK(file.substr(file.find('\n') + 1) == bytes_of_numbers<float>({1, -3}));
}

TEST_CASE("saved values: CSV has a line per row, as it is shown") {
  SavedCase of("I32", "[2,3]", bytes_of_numbers<std::int32_t>({0, 1, 2, 3, 4, 5}));
  auto saved = of.save("[0:2, 0:3]", ValuesFile::kCsv);
  REQUIRE(saved.has_value());
  CHECK(text_of_file(saved->path) == "# w[0:2, 0:3] int32\n0,1,2\n3,4,5\n");
  auto turned = of.save("[0:2, 0:3] transposed", ValuesFile::kCsv, of.folder / "turned.csv");
  REQUIRE(turned.has_value());
  CHECK(text_of_file(turned->path) == "# w[0:2, 0:3] transposed int32\n0,3\n1,4\n2,5\n");
}

TEST_CASE("saved values: a row wider than a block stays one line") {
  const std::int64_t columns = (1 << 18) + 3;
  SavedCase of("U8", "[2," + std::to_string(columns) + "]",
               std::string(static_cast<std::size_t>(columns) * 2, '\7'));
  auto saved = of.save("[0:2, 0:" + std::to_string(columns) + "]", ValuesFile::kCsv);
  REQUIRE(saved.has_value());
  const std::string text = text_of_file(saved->path);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(std::count(text.begin(), text.end(), '7') >= 2 * columns);
  CHECK(text.find(",,") == text.npos);
}

TEST_CASE("saved values: a file that exists and a place inside the checkpoint are refused") {
  SavedCase of("F32", "[1]", bytes_of_numbers<float>({1}));
  put(of.folder / "there.npy", "mine");
  auto saved = of.save("[0:1]", ValuesFile::kNpy, of.folder / "there.npy");
  REQUIRE_FALSE(saved.has_value());
  CHECK(text_of_file(of.folder / "there.npy") == "mine");
  CHECK_FALSE(of.save("[0:1]", ValuesFile::kNpy, of.options.checkpoint).has_value());
  CHECK_FALSE(of.save("[4:5]", ValuesFile::kNpy).has_value());
}

TEST_CASE("saved values: float8 becomes float32 of equal value") {
  SavedCase of("F8_E4M3", "[3]", "\x38\xC0\x7E");
  auto saved = of.save("[0:3]", ValuesFile::kNpy);
  REQUIRE_MESSAGE(saved.has_value(), saved.error().message);
  CHECK(saved->dtype == "float32");
  const std::string file = text_of_file(saved->path);
  CHECK(file.substr(file.find('\n') + 1) == bytes_of_numbers<float>({1, -2, 448}));
}

TEST_CASE("saved values: elements that cannot be read are NaN, empty cells, or refused") {
  SavedCase floats("F32", "[2,2]", bytes_of_numbers<float>({1, 2, 3, 4}));
  floats.cut(8);
  auto npy = floats.save("[0:2, 0:2]", ValuesFile::kNpy);
  REQUIRE_MESSAGE(npy.has_value(), npy.error().message);
  CHECK(npy->missing >= 2);
  const std::string file = text_of_file(npy->path);
  float last = 0;
  std::memcpy(&last, file.data() + file.size() - sizeof last, sizeof last);
  CHECK(last != last);
  auto csv = floats.save("[0:2, 0:2]", ValuesFile::kCsv);
  REQUIRE(csv.has_value());
  CHECK(text_of_file(csv->path).ends_with("\n,\n"));
  SavedCase whole("I64", "[2]", bytes_of_numbers<std::int64_t>({1, 2}));
  whole.cut(8);
  auto refused = whole.save("[0:2]", ValuesFile::kNpy);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kDamaged);
  CHECK(files_in(whole.folder.path()) == 1);
}

TEST_CASE("saved values: a disk without room is refused before a file is made") {
  SavedCase of("F32", "[4]", bytes_of_numbers<float>({1, 2, 3, 4}));
  struct FullDisk : ForwardingStore {
    using ForwardingStore::ForwardingStore;
    Result<std::uint64_t> free_bytes(const std::string&) const override { return 15; }
  } store(posix_store());
  auto saved = of.save("[0:4]", ValuesFile::kNpy, {}, store);
  REQUIRE_FALSE(saved.has_value());
  CHECK(saved.error().message.find("needs 16 B, but 15 B") != std::string::npos);
  CHECK(files_in(of.folder.path()) == 1);
}
