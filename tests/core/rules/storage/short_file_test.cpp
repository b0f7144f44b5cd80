// Findings about items outside their file: whose items, and whether any file could contain them.
#include <doctest/doctest.h>

#include "core/formats/dcp/dcp_formats.h"
#include "core/io/source.h"
#include "core/model/builder.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

std::string cause_of_short_file(std::int64_t offset, std::int64_t length) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", Bytes(100)}}));
  builder.add_tensor("fc.weight", Dtype::kFloat32, Extents{2, 3});
  builder.add_chunk(Extents{0, 0}, Extents{2, 3}, {builder.file("__0_0.distcp"), offset, length});
  CheckOptions options;
  options.depth = Depth::kMetadata;
  auto report = check(*builder.finish(), options);
  REQUIRE(report.has_value());
  for (const Finding& finding : report->findings) {
    if (finding.rule == "short-file") return finding.cause;
  }
  return "";
}

bool has_words(const std::string& cause, const char* words) {
  return cause.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a file that ends before an item is reported with the tensor that the item is of") {
  const std::string cause = cause_of_short_file(90, 40);
  CHECK(has_words(cause, "__0_0.distcp ends before 1 item that the metadata lists there"));
  CHECK(has_words(cause, "(fc.weight)"));
  CHECK(has_words(cause, ", 6 elements in all: truncated while"));
}

TEST_CASE("a range that no file can hold is a wrong record and says nothing of the file") {
  for (auto [offset, length] :
       {std::pair<std::int64_t, std::int64_t>{-1, 40}, {0, -5}, {INT64_MAX - 3, 40}}) {
    CAPTURE(offset);
    const std::string cause = cause_of_short_file(offset, length);
    CHECK(has_words(cause, "at a byte range that no file can have (fc.weight"));
    CHECK(has_words(cause, "the record is wrong"));
    CHECK_FALSE(has_words(cause, "cut off"));
  }
}
