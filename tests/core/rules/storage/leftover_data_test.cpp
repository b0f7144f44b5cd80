#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/safetensors/safetensors_formats.h"
#include "core/model/builder.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Item {
  std::int64_t offset, length;
};

// One file per list of items, with the sizes in `sizes`.
std::vector<Finding> leftovers(const std::vector<std::vector<Item>>& items,
                               const std::vector<std::size_t>& sizes,
                               const Format& format = kDcpFormat, Depth depth = Depth::kMetadata,
                               std::byte filled = {}) {
  std::vector<std::pair<std::string, Bytes>> files;
  auto name = [](std::size_t f) { return "__" + std::to_string(f) + "_0.distcp"; };
  for (std::size_t f = 0; f < sizes.size(); ++f)
    files.emplace_back(name(f), Bytes(sizes[f], filled));
  CheckpointBuilder builder;
  builder.set_format(format);
  builder.set_directory(memory_directory("ckpt", files));
  builder.add_tensor("w", Dtype::kFloat32, Extents{100});
  std::int64_t at = 0;
  for (std::size_t f = 0; f < items.size(); ++f) {
    for (const Item& item : items[f])
      builder.add_chunk(Extents{at++}, Extents{1},
                        {builder.file(name(f)), item.offset, item.length});
  }
  CheckOptions options;
  options.depth = depth;
  auto report = check(*builder.finish(), options);
  REQUIRE(report.has_value());
  std::erase_if(report->findings, [](const Finding& f) { return f.rule != "leftover-data"; });
  for (const Finding& finding : report->findings) CHECK(finding.severity == Severity::kInfo);
  return report->findings;
}

}  // namespace

TEST_CASE("files and ranges that nothing points to are counted with their bytes") {
  auto files = leftovers({{{0, 1000}}}, {1000, 3000, 0, 500});
  REQUIRE(files.size() == 1);
  CHECK(files[0].subjects == std::vector<std::string>{"__1_0.distcp", "__3_0.distcp"});
  CHECK(number(files[0], "count") == 2);
  CHECK(number(files[0], "bytes") == 3500);

  auto ranges = leftovers({{{0, 1000}, {3000, 1000}}, {{0, 4000}}}, {5000, 4000});
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].subjects == std::vector<std::string>{"__0_0.distcp"});
  CHECK(number(ranges[0], "count") == 2);
  CHECK(number(ranges[0], "bytes") == 3000);
  CHECK(ranges[0].cause.find("__0_0.distcp [1000, 3000)") != std::string::npos);
}

TEST_CASE("leftover data: a checkpoint in a folder below is not one, and is named as not checked") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", Bytes(400)},
                                                  {"old/.metadata", Bytes(10)},
                                                  {"old/__0_0.distcp", Bytes(500)},
                                                  {"odd/__0_0.distcp", Bytes(300)}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{100});
  builder.add_chunk(Extents{0}, Extents{100}, {builder.file("__0_0.distcp"), 0, 400});
  CheckOptions options;
  options.depth = Depth::kMetadata;
  auto report = check(*builder.finish(), options);
  REQUIRE(report.has_value());
  const auto found = std::find_if(report->findings.begin(), report->findings.end(),
                                  [](const Finding& f) { return f.rule == "leftover-data"; });
  REQUIRE(found != report->findings.end());
  CHECK(found->subjects == std::vector<std::string>{"odd/__0_0.distcp"});
  CHECK(std::any_of(report->unjudged.begin(), report->unjudged.end(), [](const Unjudged& one) {
    return one.what.find("old/") != std::string::npos;
  }));
}

TEST_CASE("alignment, items in any order, shared and broken ones are not leftovers") {
  CHECK(leftovers({{{64, 936}, {1008, 1000}}}, {2500}).empty());
  CHECK(leftovers({{{1000, 1000}, {0, 1000}, {0, 1000}}}, {2000}).empty());
  CHECK(leftovers({{{0, 1000}, {1000, INT64_MAX}, {-1, 5}, {5, -1}}}, {2000}).empty());
  // A safetensors file has a header that no tensor owns.
  CHECK(leftovers({{{2000, 1000}}}, {3000}, kSafetensorsFormat).empty());
}

TEST_CASE("less than a block before a long item is left free where it holds zeros") {
  constexpr std::int64_t kMiB = 1 << 20;
  const std::vector<std::vector<Item>> items = {{{0, 1000}, {5095, kMiB}}};
  const std::vector<std::size_t> sizes = {5095 + kMiB};
  CHECK(leftovers(items, sizes).empty());
  CHECK(leftovers(items, sizes, kDcpFormat, Depth::kMetadata, std::byte{1}).empty());
  CHECK(leftovers(items, sizes, kDcpFormat, Depth::kHeaders).empty());
  // An item whose entry was removed from the metadata.
  auto other = leftovers(items, sizes, kDcpFormat, Depth::kHeaders, std::byte{1});
  REQUIRE(other.size() == 1);
  CHECK(number(other[0], "bytes") == 4095);
  // A gap of whole blocks, a shorter item after it, the end of the file.
  CHECK(leftovers({{{0, 1000}, {5096, kMiB}}}, {5096 + kMiB}).size() == 1);
  CHECK(leftovers({{{0, 1000}, {5095, kMiB - 1}}}, {5094 + kMiB}).size() == 1);
  CHECK(leftovers({{{0, kMiB}}}, {kMiB + 4095}).size() == 1);
}
