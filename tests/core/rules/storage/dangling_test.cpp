// Tiles without a record, and too short records: reported only if nothing else is wrong.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/common/codecs.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/open.h"
#include "core/make_zip.h"
#include "core/model/builder.h"
#include "core/rules/check.h"

using namespace shw;
using namespace shw::test;

namespace {

std::size_t count_of_rule(const Checkpoint& checkpoint, Depth depth, std::string_view rule) {
  CheckOptions options;
  options.depth = depth;
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return static_cast<std::size_t>(
      std::count_if(report->findings.begin(), report->findings.end(),
                    [&](const Finding& finding) { return finding.rule == rule; }));
}

}  // namespace

TEST_CASE("a tile in a compressed record of a torch.save file is not checked, and not dangling") {
  const std::string storage(24, 'x');
  const std::string file =
      make_zip({{"m/data.pkl", as_pickle("}(" + pickled_text("w") + tensor_call({}) + "u")},
                {"m/data/0", storage, true},
                {"m/version", "3\n"}});
  auto opened = open_checkpoint(memory_directory("ckpt", {{"model.pt", to_bytes(file)}}));
  REQUIRE(opened.has_value());
  CHECK(count_of_rule(**opened, Depth::kHeaders, "storage-dangling") == 0);
  CHECK(count_of_rule(**opened, Depth::kHeaders, "not-looked-at") == 1);
}

TEST_CASE("a tile that an index leaves without a record is dangling") {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{2, 3});
  builder.add_chunk(Extents{0, 0}, Extents{2, 3}, {});
  CHECK(count_of_rule(*builder.finish(), Depth::kMetadata, "storage-dangling") == 1);
}

TEST_CASE("a compressed item that is the tile is not too short, however short it is") {
  const std::string zeros(8000, '\0');
  const std::string packed(
      "\xed\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08\x0a\x00\x00\x00\x00\x00\x00\x00\x18",
      22);
  CheckpointBuilder builder;
  TensorText tensor;
  tensor.count = 2000;
  tensor.sizes = {2, 1000};
  tensor.strides = {1000, 1};
  const std::string item =
      make_zip({{"archive/data.pkl", as_pickle(tensor_call(tensor))},
                {"archive/data/0", zeros, true, ~std::uint64_t{0}, true, packed},
                {"archive/version", "3\n"}});
  REQUIRE(item.size() < zeros.size());
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("ckpt", {{"__0_0.distcp", to_bytes(item)}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{2, 1000});
  builder.add_chunk(Extents{0, 0}, Extents{2, 1000},
                    {builder.file("__0_0.distcp"), 0, static_cast<std::int64_t>(item.size())});
  CHECK(count_of_rule(*builder.finish(), Depth::kHeaders, "storage-dangling") == 0);
}
