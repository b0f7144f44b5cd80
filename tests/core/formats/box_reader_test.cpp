#include "core/formats/box_reader.h"

#include <doctest/doctest.h>

#include <random>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

Box random_box(ExtentsView sizes, std::mt19937& dice) {
  Box box = whole(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) continue;
    box.offsets[d] = static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(sizes[d]));
    box.sizes[d] = 1 + static_cast<std::int64_t>(
                           dice() % static_cast<std::uint64_t>(sizes[d] - box.offsets[d]));
  }
  return box;
}

// The box cut out of the whole chunk.
Bytes cut(const Bytes& all, ExtentsView sizes, const Box& box, std::size_t element) {
  Extents strides = row_major_strides(sizes);
  std::int64_t first = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) first += box.offsets[d] * strides[d];
  Bytes out(static_cast<std::size_t>(*volume(box.sizes)) * element);
  copy_strided({all, strides, first}, {out, row_major_strides(box.sizes), 0}, box.sizes, element);
  return out;
}

}  // namespace

TEST_CASE("any box of any chunk that real torch wrote is the whole chunk cut down") {
  auto cases = test::fixture_cases("healthy_");
  REQUIRE_FALSE(cases.empty());
  std::mt19937 dice(8);
  std::size_t stored = 0, decoded = 0;
  for (const std::string& folder : cases) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    BoxReader reader(**checkpoint);
    for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c) {
      ChunkId chunk{c};
      ExtentsView sizes = (*checkpoint)->sizes(chunk);
      std::size_t element = size_of((*checkpoint)->dtype((*checkpoint)->tensor_of(chunk)));
      auto all = read_chunk(**checkpoint, chunk);
      REQUIRE(all.has_value());
      auto storage = storage_of(**checkpoint, chunk);
      REQUIRE(storage.has_value());
      (storage->is_stored ? stored : decoded) += 1;
      for (int round = 0; round < 3; ++round) {
        Box box = round == 0 ? whole(sizes) : random_box(sizes, dice);
        auto read = reader.read(chunk, box);
        REQUIRE_MESSAGE(read.has_value(), read.error().message);
        CHECK(*read == cut(*all, sizes, box, element));
      }
      Box outside = whole(sizes);
      if (outside.sizes.empty()) continue;
      ++outside.sizes[0];
      CHECK_FALSE(reader.read(chunk, outside).has_value());
    }
  }
  CHECK(stored > 100);
  CHECK(decoded > 0);
}

TEST_CASE("where many chunks lie is what is said of each alone") {
  std::size_t seen = 0;
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto checkpoint = open_checkpoint(folder + "/ckpt");
    REQUIRE(checkpoint.has_value());
    std::vector<ChunkId> chunks;
    for (std::uint32_t c = (*checkpoint)->chunk_count(); c-- > 0;) chunks.push_back(ChunkId{c});
    std::vector<std::optional<ChunkStorage>> found(chunks.size());
    auto read = each_storage(
        **checkpoint, chunks, [&](std::size_t i, const ChunkStorage& said) { found[i] = said; },
        nullptr);
    bool all_alone = true;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      auto alone = storage_of(**checkpoint, chunks[i]);
      all_alone = all_alone && alone.has_value();
      CHECK(found[i].has_value() == alone.has_value());
      if (!alone || !found[i]) continue;
      CHECK(found[i]->is_stored == alone->is_stored);
      CHECK(found[i]->file == alone->file);
      CHECK(found[i]->offset == alone->offset);
      CHECK(found[i]->length == alone->length);
      CHECK(found[i]->strides == alone->strides);
      CHECK(found[i]->first == alone->first);
      ++seen;
    }
    CHECK(read.has_value() == all_alone);
  }
  CHECK(seen > 100);
}
