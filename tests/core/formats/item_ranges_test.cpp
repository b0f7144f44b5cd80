// Compares the bytes of a box read without decoding with the elements that decoding gives.
#include <doctest/doctest.h>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"

using namespace shw;

namespace {

Bytes read_runs(const Checkpoint& checkpoint, const std::vector<ByteRun>& runs) {
  Bytes out;
  for (const ByteRun& run : runs) {
    auto source = checkpoint.directory()->open(checkpoint.file(run.file).path);
    REQUIRE(source.has_value());
    auto bytes = read_bytes(**source, run.offset, run.length);
    REQUIRE(bytes.has_value());
    out.insert(out.end(), bytes->begin(), bytes->end());
  }
  return out;
}

// The slow way: copies element by element out of the decoded chunk.
Bytes box_of(const Bytes& chunk, ExtentsView sizes, const Box& box, std::size_t element) {
  Bytes out;
  Extents strides = row_major_strides(sizes), at(sizes.size(), 0);
  if (is_empty(box)) return out;
  while (true) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < at.size(); ++d) index += (box.offsets[d] + at[d]) * strides[d];
    auto first = chunk.begin() + index * static_cast<std::int64_t>(element);
    out.insert(out.end(), first, first + static_cast<std::int64_t>(element));
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == box.sizes[d - 1]) at[--d] = 0;
    if (d == 0) return out;
  }
}

// The whole box, and the box without the first and the last index of every dim.
std::vector<Box> boxes_of(ExtentsView sizes) {
  Box inner = whole(sizes), column = whole(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    inner.offsets[d] = sizes[d] > 2 ? 1 : 0;
    inner.sizes[d] = sizes[d] > 2 ? sizes[d] - 2 : sizes[d];
  }
  if (!sizes.empty() && sizes.back() > 1) column.offsets.back() = column.sizes.back() = 1;
  return {whole(sizes), inner, column};
}

}  // namespace

TEST_CASE("the byte runs of a box hold what decoding gives of it") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  std::size_t direct = 0, decoded = 0;
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto opened = open_checkpoint(folder + "/ckpt");
    REQUIRE(opened.has_value());
    const Checkpoint& checkpoint = **opened;
    for (std::uint32_t c = 0; c < checkpoint.chunk_count(); ++c) {
      ChunkId chunk{c};
      std::size_t element = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
      auto all = read_chunk(checkpoint, chunk);
      REQUIRE(all.has_value());
      for (const Box& box : boxes_of(checkpoint.sizes(chunk))) {
        auto runs = ranges(checkpoint, chunk, box);
        REQUIRE_MESSAGE(runs.has_value(), runs.error().message);
        ++(runs->has_value() ? direct : decoded);
        if (!runs->has_value()) continue;
        CHECK(read_runs(checkpoint, **runs) == box_of(*all, checkpoint.sizes(chunk), box, element));
      }
    }
  }
  CHECK(direct > 1000);
  CHECK(decoded > 0);  // compressed items, and transposed views
}

TEST_CASE("a box outside of its chunk has no byte runs") {
  auto opened = open_checkpoint(test::fixture_cases("healthy_fsdp").front() + "/ckpt");
  REQUIRE(opened.has_value());
  Box box = whole((*opened)->sizes(ChunkId{0}));
  box.offsets[0] = 1;
  auto runs = ranges(**opened, ChunkId{0}, box);
  REQUIRE_FALSE(runs.has_value());
  CHECK(runs.error().kind == ErrorKind::kUsage);
}
