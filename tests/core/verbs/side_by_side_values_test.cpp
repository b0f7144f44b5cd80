// The same slice of two checkpoints, compared with a loop over both.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/formats/open.h"
#include "core/session/session.h"
#include "core/temporary_folder.h"
#include "core/verbs/values/slice_values.h"

using namespace shw;

namespace {

// One tensor as a safetensors file.
std::string tensor_file(const TemporaryFolder& folder, const char* name, const char* dtype,
                        const char* shape, const std::vector<float>& values, bool narrow = false) {
  std::vector<char> bytes;
  for (float value : values) {
    char raw[4];
    std::memcpy(raw, &value, 4);
    bytes.insert(bytes.end(), raw + (narrow ? 2 : 0), raw + 4);
  }
  std::string header = std::string("{\"w\":{\"dtype\":\"") + dtype + "\",\"shape\":" + shape +
                       ",\"data_offsets\":[0," + std::to_string(bytes.size()) + "]}}";
  std::filesystem::create_directory(folder / name);
  std::ofstream file(folder / name + std::string("/model.safetensors"), std::ios::binary);
  auto length = static_cast<std::uint64_t>(header.size());
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header;
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return folder / name;
}

verbs::SideBySideValues beside(const std::string& a, const std::string& b) {
  auto one = open_checkpoint(a), two = open_checkpoint(b);
  REQUIRE(one.has_value());
  REQUIRE(two.has_value());
  auto tensor = (*one)->find("w");
  REQUIRE(tensor.has_value());
  auto values = verbs::slice_values(**one, *tensor, {});
  REQUIRE(values.has_value());
  return verbs::side_by_side_values(**one, *tensor, **two, *values);
}

}  // namespace

TEST_CASE("what differs between two checkpoints is counted, and by how much") {
  TemporaryFolder folder;
  std::vector<float> from(40 * 30), to;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i % 17) - 8;
  to = from;
  to[3] += 0.5f;
  to[700] -= 4;
  to[701] = NAN;
  from[900] = to[900] = NAN;  // equal bits are not a difference
  auto told = beside(tensor_file(folder, "a", "F32", "[40,30]", from),
                     tensor_file(folder, "b", "F32", "[40,30]", to));
  CHECK(told.note.empty());
  REQUIRE(told.difference.has_value());
  CHECK(told.difference->differing == 3);
  CHECK(told.difference->greatest == 4);
  CHECK(told.difference->values.statistics.elements == from.size());
  CHECK(told.difference->values.statistics.nan == 1);
  CHECK(told.difference->values.statistics.zero == from.size() - 3);
  CHECK(told.difference->values.table[3] == "0.5");
  REQUIRE(told.values.has_value());
  CHECK(told.values->table[0] == "-8");
}

TEST_CASE("other dtypes are compared as numbers, other shapes and names are said in words") {
  TemporaryFolder folder;
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  std::string a = tensor_file(folder, "a", "F32", "[2,3]", values);
  auto narrow = beside(a, tensor_file(folder, "narrow", "BF16", "[2,3]", values, true));
  CHECK(narrow.note == "float32 in A, bfloat16 in B: compared as numbers");
  REQUIRE(narrow.difference.has_value());
  CHECK(narrow.difference->differing == 0);
  auto turned = beside(a, tensor_file(folder, "turned", "F32", "[3,2]", values));
  CHECK_FALSE(turned.difference.has_value());
  CHECK(turned.note == "in B it has the shape [3, 2], in A [2, 3]: the slices cannot be compared");
  std::string base = std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt";
  auto nameless = beside(a, base);
  CHECK(nameless.note == "B has no tensor of this name");
}

TEST_CASE("a session that compares shows the same slice of both, and of one when it is left") {
  TemporaryFolder folder;
  std::vector<float> values(64, 1), other(64, 1);
  other[9] = 3;
  std::string a = tensor_file(folder, "a", "F32", "[8,8]", values);
  std::string b = tensor_file(folder, "b", "F32", "[8,8]", other);
  Session session;
  session.apply({OpenCommand{a}, CheckCommand{}, CompareCommand{b}});
  session.wait();
  REQUIRE(session.snapshot()->compared != nullptr);
  session.apply({SelectTensorCommand{"w"}, ValuesCommand{}});
  session.wait();
  auto look = session.snapshot()->values;
  REQUIRE(look != nullptr);
  REQUIRE(look->side_by_side.has_value());
  REQUIRE(look->side_by_side->difference.has_value());
  CHECK(look->side_by_side->difference->differing == 1);
  CHECK(look->side_by_side->difference->greatest == 2);
}
