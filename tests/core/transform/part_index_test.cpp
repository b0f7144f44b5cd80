#include "core/transform/part_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace shw;

namespace {

bool same_parts(const std::vector<Part>& a, const std::vector<Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Part& x, const Part& y) {
    return x.box == y.box && x.first == y.first && x.order == y.order &&
           std::get<FromChunk>(x.from).chunk == std::get<FromChunk>(y.from).chunk;
  });
}

}  // namespace

TEST_CASE("the parts of a tile are found as if all of them were checked") {
  std::mt19937 random(5);
  auto number = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  for (int round = 0; round < 200; ++round) {
    const std::size_t ndim = random() % 4;
    TargetTensor tensor;
    for (std::size_t d = 0; d < ndim; ++d) tensor.shape.push_back(1 + number(40));
    auto box_in = [&] {
      Box box;
      for (std::int64_t extent : tensor.shape) {
        box.offsets.push_back(number(extent));
        box.sizes.push_back(number(extent - box.offsets.back() + 1));
      }
      return box;
    };
    const auto count = static_cast<std::uint32_t>(random() % 60);
    for (std::uint32_t i = 0; i < count; ++i) {
      Box box = box_in();
      if (is_empty(box)) continue;
      tensor.parts.push_back(
          {std::move(box), FromChunk{0, ChunkId{i}}, Extents(ndim, 0), identity_order(ndim)});
    }
    const PartIndex index(tensor);
    for (int look = 0; look < 20; ++look) {
      Box tile = box_in();
      if (!tensor.parts.empty() && look % 4 == 0)
        tile = tensor.parts[random() % tensor.parts.size()].box;
      CHECK(same_parts(index.parts_of_tile(tile), parts_of_tile(tensor, tile)));
    }
  }
}
