#include "core/formats/dcp/dcp_write.h"

#include <random>

#include "core/formats/dcp/dcp_support.h"

using namespace shw;
using namespace shw::test;

namespace {

std::string body(const Checkpoint& checkpoint) {
  std::string all = describe(checkpoint);
  return all.substr(all.find('\n'));  // without the provenance
}

DcpMetadata random_metadata(std::uint32_t seed) {
  std::mt19937_64 random(seed);
  auto up_to = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % (most + 1)); };
  DcpMetadata metadata;
  for (int t = 0; t < 40; ++t) {
    DcpTensor tensor;
    tensor.fqn = "layers." + std::to_string(t) + std::string(random() % 300, 'x');
    tensor.dtype = Dtype::kBfloat16;
    tensor.requires_grad = t % 2 == 0;
    std::size_t dims = random() % 6;
    for (std::size_t d = 0; d < dims; ++d)
      tensor.shape.push_back(up_to(std::uint64_t{1} << (8 * d)));
    if (t % 3 == 0) tensor.path = {std::string("layers"), std::int64_t{t}};
    for (std::int64_t c = up_to(60); c >= 0; --c) {
      DcpChunk chunk;
      for (std::size_t d = 0; d < dims; ++d) {
        chunk.offsets.push_back(up_to(~std::uint64_t{0} >> (1 + random() % 63)));
        chunk.sizes.push_back(d == 0 ? up_to(300) : 7);
      }
      if (dims > 0) chunk.offsets[0] = c;  // offsets are keys
      chunk.item = {"__" + std::to_string(up_to(20)) + "_0.distcp", random() >> 20, random() >> 30};
      if (t == 7) chunk.item.transforms = {"stream.zstd/1"};
      tensor.chunks.push_back(std::move(chunk));
      if (dims == 0) break;
    }
    metadata.tensors.push_back(std::move(tensor));
  }
  metadata.objects.push_back({"step", {"__0_0.distcp", 5, 6}, {std::string("step")}});
  return metadata;
}

}  // namespace

TEST_CASE("what is written reads back the same") {
  for (const std::string& file : metadata_files()) {
    CAPTURE(file);
    auto before = open_bytes(read_file(file));
    REQUIRE(before);
    MemorySink sink;
    REQUIRE(write_dcp_metadata(metadata_of(**before), sink));
    auto after = open_bytes(sink.bytes);
    REQUIRE(after);
    CHECK((*after)->provenance().path_class == "str");
    CHECK((*after)->provenance().properties_arity == 5);
    if ((*before)->provenance().has_planner_data) {
      CHECK(body(**after) == body(**before));
    } else {
      CHECK((*after)->path(TensorId{0}).size() == 1);  // its own name
    }
  }
}

TEST_CASE("random layouts survive writing, and the shortcut reads them as the machine does") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    DcpMetadata metadata = random_metadata(seed);
    MemorySink first, second;
    REQUIRE(write_dcp_metadata(metadata, first));
    auto quick = open_bytes(first.bytes);
    auto slow = open_bytes(first.bytes, false);
    REQUIRE(quick);
    REQUIRE(slow);
    CHECK(describe(**quick) == describe(**slow));
    CHECK((*quick)->opening_findings().empty());
    DcpMetadata again = metadata_of(**quick);
    again.checkpoint_id = metadata.checkpoint_id;
    again.save_id = metadata.save_id;
    REQUIRE(write_dcp_metadata(again, second));
    CHECK(first.bytes == second.bytes);
  }
}

TEST_CASE("a tensor without a dtype is refused by name") {
  DcpMetadata metadata;
  metadata.tensors.push_back({});
  metadata.tensors[0].fqn = "w";
  MemorySink sink;
  auto written = write_dcp_metadata(metadata, sink);
  REQUIRE_FALSE(written);
  CHECK(written.error().place.tensor == "w");
}
