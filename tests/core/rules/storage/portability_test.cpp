// The torch version that a checkpoint needs, and the files that require it.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/rules/check.h"

using namespace shw;

TEST_CASE("a young dtype is reported of the files that hold it where there is no index of dtypes") {
  auto file_with = [](const std::string& fqn, const std::string& dtype) {
    std::string header =
        "{\"" + fqn + R"(":{"dtype":")" + dtype + R"(","shape":[4],"data_offsets":[0,4]}})";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return test::to_bytes(test::little(header.size(), 8) + header + std::string(4, '\1'));
  };
  auto checkpoint = open_checkpoint(
      memory_directory("ck", {{"model-00001-of-00002.safetensors", file_with("a", "F8_E8M0")},
                              {"model-00002-of-00002.safetensors", file_with("b", "I8")}}));
  REQUIRE(checkpoint.has_value());
  auto report = check(**checkpoint, {});
  REQUIRE(report.has_value());
  auto found = std::find_if(report->findings.begin(), report->findings.end(),
                            [](const Finding& one) { return one.rule == "portability"; });
  REQUIRE(found != report->findings.end());
  CHECK(found->subjects == std::vector<std::string>{"model-00001-of-00002.safetensors"});
  CHECK(found->cause.find("metadata") == std::string::npos);
}
