// Which tensors may share a dataset, compared with their tiles one by one.
#include "core/hdf5_view/tile_stacks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/formats/common/codecs.h"
#include "core/model/builder.h"

using namespace shw;

namespace {

// Tensors of given shapes with a handmade mapping.
struct Laid {
  CheckpointBuilder builder;
  FileId files[2]{};
  std::vector<MappedTensor> mapped;
  std::shared_ptr<const Checkpoint> checkpoint;

  Laid() {
    static const Format kBare{.name = "bare", .title = "bare elements", .codec = &kRawCodec};
    builder.set_format(kBare);
    files[0] = builder.file("a.bin");
    files[1] = builder.file("b.bin");
  }
  // Two column tiles of [4, 3], one a file, that begin at these bytes.
  void tensor(std::uint64_t in_a, std::uint64_t in_b, Dtype dtype = Dtype::kFloat32) {
    builder.add_tensor("t" + std::to_string(mapped.size()), dtype, Extents{4, 6});
    const std::uint64_t bytes = 12 * size_of(dtype);
    MappedTensor tensor;
    tensor.mapping = Mapping::kTiles;
    tensor.tiles = {{{{0, 0}, {4, 3}}, {{files[0], in_a, bytes}}},
                    {{{0, 3}, {4, 3}}, {{files[1], in_b, bytes}}}};
    mapped.push_back(std::move(tensor));
  }
  std::vector<TileStack> stacks() {
    checkpoint = builder.finish();
    return find_stacks(*checkpoint, TensorId{0}, mapped);
  }
};

// Checks that every tile of a stack is where the stack says, and that no tensor is in two stacks.
void check_stacks(const Laid& laid, const std::vector<TileStack>& stacks) {
  std::set<std::size_t> seen;
  for (const TileStack& stack : stacks) {
    REQUIRE(stack.tensors.size() >= 2);
    const MappedTensor& first = laid.mapped[stack.tensors[0]];
    const std::uint64_t element =
        size_of(laid.checkpoint->dtype(TensorId{static_cast<std::uint32_t>(stack.tensors[0])}));
    REQUIRE(stack.steps.size() == first.tiles.size());
    for (std::size_t i = 0; i < stack.tensors.size(); ++i) {
      CHECK(seen.insert(stack.tensors[i]).second);
      const MappedTensor& tensor = laid.mapped[stack.tensors[i]];
      REQUIRE(tensor.tiles.size() == first.tiles.size());
      for (std::size_t t = 0; t < first.tiles.size(); ++t) {
        CHECK(tensor.tiles[t].box == first.tiles[t].box);
        CHECK(tensor.tiles[t].runs[0].file == first.tiles[t].runs[0].file);
        CHECK(tensor.tiles[t].runs[0].offset ==
              first.tiles[t].runs[0].offset +
                  i * static_cast<std::uint64_t>(stack.steps[t]) * element);
      }
    }
  }
}

}  // namespace

TEST_CASE("tensors that are at equal distances are one stack, whatever is between them") {
  Laid laid;
  for (std::uint64_t i = 0; i < 10; ++i) {
    laid.tensor(7 + i * 200, 1000 + i * 48);
    laid.tensor(90 + i * 200, 8000 + i * 60, Dtype::kBfloat16);
  }
  auto stacks = laid.stacks();
  check_stacks(laid, stacks);
  REQUIRE(stacks.size() == 2);
  CHECK(stacks[0].tensors.size() == 10);
  CHECK(stacks[1].tensors.size() == 10);
}

TEST_CASE("items of odd lengths are stacks of those that begin alike") {
  Laid laid;
  for (std::uint64_t i = 0; i < 20; ++i) laid.tensor(i * 51, i * 53);
  auto stacks = laid.stacks();
  check_stacks(laid, stacks);
  CHECK(stacks.size() == 4);
}

TEST_CASE("a stack ends where a distance, a file or an order is another one") {
  Laid laid;
  for (std::uint64_t i = 0; i < 6; ++i) laid.tensor(i * 100, i * 100);
  for (std::uint64_t i = 0; i < 6; ++i) laid.tensor(5000 + i * 100, 5000 + i * 104);
  for (std::uint64_t i = 0; i < 6; ++i) laid.tensor(9000 + i * 100, 20000 - i * 100);
  for (std::uint64_t i = 0; i < 6; ++i) laid.tensor(30000 + i * 4, 30000 + i * 4);  // overlap
  for (std::uint64_t i = 0; i < 3; ++i) laid.tensor(40000 + i * 100, 40000 + i * 100);
  laid.mapped[2].tiles[1].runs[0].file = laid.files[0];
  auto stacks = laid.stacks();
  check_stacks(laid, stacks);
  std::size_t stacked = 0;
  for (const TileStack& stack : stacks) stacked += stack.tensors.size();
  CHECK(stacked == 6);  // the second six; of the first, only three are adjacent
}

TEST_CASE("whatever is at random places is stacked as it is") {
  std::mt19937 random(20261123);
  std::size_t stacked = 0;
  for (int round = 0; round < 200; ++round) {
    Laid laid;
    std::uint64_t a = random() % 50, b = random() % 50;
    for (int i = 0; i < 40; ++i) {
      laid.tensor(a, b, random() % 4 ? Dtype::kFloat32 : Dtype::kBfloat16);
      a += 48 + random() % 3 * 4 * (random() % 5 == 0);
      b += 52 + random() % 2 * (random() % 7 == 0);
    }
    std::shuffle(laid.mapped.begin(), laid.mapped.end(), random);
    for (std::size_t i = 0; i < laid.mapped.size(); ++i) {
      // Only places are shuffled: a tensor keeps its dtype.
      for (MappedTile& tile : laid.mapped[i].tiles) tile.runs[0].length = 24;
    }
    auto stacks = laid.stacks();
    check_stacks(laid, stacks);
    for (const TileStack& stack : stacks) stacked += stack.tensors.size();
  }
  CHECK(stacked > 400);
}

TEST_CASE("what is not a run of its own, or alone, is in no stack") {
  Laid laid;
  for (std::uint64_t i = 0; i < 8; ++i) laid.tensor(i * 100, i * 100);
  for (std::size_t i = 0; i < 8; i += 2) laid.mapped[i].tiles[0].count = 4;
  laid.mapped[1].mapping = Mapping::kPartly;
  laid.mapped[3].tiles.pop_back();
  CHECK(laid.stacks().empty());
}
