// Boxes of a tensor in several chunks, compared with its elements one by one.
#include "core/facts/values/tensor_pieces.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "core/program/random_program.h"
#include "core/repair/make_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("pieces of a tensor: any box is read row-major, from one chunk, from several, and cast") {
  // [6, 8] in four chunks of [3, 4]; element [r, c] is 8 r + c.
  TemporaryFolder folder;
  std::vector<MadeChunk> tiles;
  for (const std::int64_t r : {0, 3}) {
    for (const std::int64_t c : {0, 4}) {
      Values values;
      for (std::int64_t i = 0; i < 12; ++i) values.push_back(8 * (r + i / 4) + c + i % 4);
      tiles.push_back({{{r, c}, {3, 4}}, {3, 4}, values});
    }
  }
  write_checkpoint(folder / "ckpt", {{"w", {6, 8}, tiles}});
  const auto checkpoint = open_checkpoint(folder / "ckpt").value();
  const auto own = pieces_of(*checkpoint, TensorId{0});
  const auto as_double = pieces_of(*checkpoint, TensorId{0}, Dtype::kFloat64);
  REQUIRE(own);
  REQUIRE(as_double);
  Dice dice(5);
  Bytes floats, doubles;
  for (int round = 0; round < 200; ++round) {
    Box box{{dice.pick(0, 5), dice.pick(0, 7)}, {}};
    box.sizes = {dice.pick(1, 6 - box.offsets[0]), dice.pick(1, 8 - box.offsets[1])};
    REQUIRE(own->read(box, floats));
    REQUIRE(as_double->read(box, doubles));
    const auto count = static_cast<std::size_t>(box.sizes[0] * box.sizes[1]);
    REQUIRE(floats.size() == count * sizeof(float));
    REQUIRE(doubles.size() == count * sizeof(double));
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const auto wanted =
          8 * (box.offsets[0] + at / box.sizes[1]) + box.offsets[1] + at % box.sizes[1];
      float single = 0;
      double twice = 0;
      std::memcpy(&single, floats.data() + i * sizeof single, sizeof single);
      std::memcpy(&twice, doubles.data() + i * sizeof twice, sizeof twice);
      CHECK(single == static_cast<float>(wanted));
      CHECK(twice == static_cast<double>(wanted));
    }
  }
  // A chunk whose file ends early is not read.
  std::filesystem::resize_file(folder / "ckpt/__0_0.distcp", 64);
  const auto cut = open_checkpoint(folder / "ckpt").value();
  const auto pieces = pieces_of(*cut, TensorId{0});
  CHECK_FALSE((pieces && pieces->read(whole(Extents{6, 8}), floats)));
}
