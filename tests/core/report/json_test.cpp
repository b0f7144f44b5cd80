#include <doctest/doctest.h>

#include "core/base/words.h"
#include "core/model/builder.h"
#include "core/report/report.h"
#include "core/unnamed_format.h"

using namespace shw;

namespace {

bool has(const std::string& text, std::string_view part) {
  bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

}  // namespace

TEST_CASE("check as JSON has the promised keys, and null where there is no remedy") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{4});
  builder.add_chunk(Extents{0}, Extents{3}, ItemPlace{builder.file("__0_0.distcp"), 0, 1});
  auto checkpoint = builder.finish();
  auto report = check(*checkpoint, CheckOptions{Depth::kMetadata, nullptr, std::nullopt});
  REQUIRE(report.has_value());
  std::string json = check_to_json(*report);
  CHECK(has(json, R"("schema": "shardwright/2")"));
  CHECK(has(json, R"("verdict": "findings")"));
  CHECK(has(json, R"("depth": "metadata")"));
  CHECK(has(json, R"("rule": "coverage-gap")"));
  CHECK(has(json, R"("severity": "error")"));
  CHECK(has(json, R"("remedy": null)"));
  CHECK(has(json, R"("missing_elements": 1)"));
}

TEST_CASE("values are written so that they read back exactly") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  TensorId tensor = builder.add_tensor("w", Dtype::kFloat32, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, ItemPlace{builder.file("__7_0.distcp"), 5, 99});
  auto checkpoint = builder.finish();
  TensorValues values{Dtype::kFloat32, {4}, {}, 0};
  for (std::uint32_t bits : {0x3DCCCCCDu, 0x7FC00000u, 0xFF800000u, 0x80000000u}) {
    for (int shift = 0; shift < 32; shift += 8)
      values.bytes.push_back(static_cast<std::byte>(bits >> shift));
  }
  std::string json = tensor_to_json(*checkpoint, tensor, &values, 0);
  CHECK(has(json, R"("values": [0.1, "NaN", "-Infinity", -0)"));
  CHECK(has(json, R"("writer": 7)"));
  CHECK(has(json, R"("length": 99)"));
  CHECK(has(tensor_to_json(*checkpoint, tensor, &values, 1), R"("values": [0.1])"));
  CHECK_FALSE(tensor_to_json(*checkpoint, tensor, nullptr, 0).find("values") != std::string::npos);
}

TEST_CASE("an error as JSON says message, file and offset, null where unknown") {
  std::string json = error_to_json({ErrorKind::kDamaged, "cut off", Place{".metadata", 12}});
  CHECK(has(json, R"("message": "cut off")"));
  CHECK(has(json, R"("file": ".metadata")"));
  CHECK(has(json, R"("offset": 12)"));
  CHECK(has(error_to_json({ErrorKind::kIo, "x"}), R"("offset": null)"));
}

TEST_CASE("names that are not UTF-8 do not end the report") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("w\xff", Dtype::kFloat32, Extents{4});
  CHECK(has(list_to_json(*builder.finish(), std::vector<std::uint32_t>{0}, {}), "\"chunks\": 0"));
}

TEST_CASE("numbers are said as people say them") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1000) == "1.00 kB");
  CHECK(human_bytes(9'999) == "10.0 kB");
  CHECK(human_bytes(99'960) == "100 kB");
  CHECK(human_bytes(999'499) == "999 kB");
  CHECK(human_bytes(999'500) == "1.00 MB");
  CHECK(human_bytes(3'019'898'880) == "3.02 GB");
  CHECK(human_bytes(~std::uint64_t{0}) == "18.4 EB");
  CHECK(human_count(999) == "999");
  CHECK(human_count(1'142) == "1,142");
  CHECK(human_count(1'000'000) == "1,000,000");
  CHECK(plural(1, "tensor") == "1 tensor");
  CHECK(plural(3'000, "box") == "3,000 boxes");
  CHECK(plural(2, "copy") == "2 copies");
  const std::string names[] = {"a", "b", "c", "d"};
  CHECK(short_list_text(std::span(names, 1)) == "a");
  CHECK(short_list_text(std::span(names, 2)) == "a and b");
  CHECK(short_list_text(names) == "a, b, c and 1 more");
}
