// Tensors in pieces of any cut, compared element by element.
#include "core/facts/values/equal_elements.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/facts/in_pieces.h"

using namespace shw;
using namespace shw::test;

namespace {

Extents drawn_shape(std::mt19937& dice) {
  Extents shape(2 + dice() % 2);
  for (std::int64_t& size : shape) size = 1 + static_cast<std::int64_t>(dice() % 9);
  return shape;
}

Bytes drawn_bytes(const Extents& shape, std::size_t element, std::mt19937& dice) {
  Bytes bytes(static_cast<std::size_t>(*volume(shape)) * element);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(dice());
  return bytes;
}

// Copies element by element: `place` gives the position in the image of element `at` of the truth.
template <class Place>
Bytes moved(const Bytes& truth, const Extents& shape, const Extents& image_shape,
            std::size_t element, Place place) {
  Bytes image(truth.size());
  const Extents strides = row_major_strides(image_shape);
  Extents at(shape.size(), 0);
  for (std::size_t i = 0; i < truth.size() / element; ++i) {
    const auto to = static_cast<std::size_t>(index_at(place(at), strides));
    std::copy_n(&truth[i * element], element, &image[to * element]);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return image;
}

}  // namespace

TEST_CASE("equal elements: equal, transposed and permuted tensors are told to the bit") {
  std::mt19937 dice(7);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const Extents shape = drawn_shape(dice);
    const Bytes truth = drawn_bytes(shape, 2, dice);
    auto pieces = [&](const Extents& of, const Bytes& bytes) {
      return in_pieces(Dtype::kBfloat16, of, bytes, dice);
    };
    Bytes other = truth;
    other[dice() % other.size()] ^= std::byte{1};
    CHECK(are_equal_elements(pieces(shape, truth), pieces(shape, truth)) == true);
    CHECK(are_equal_elements(pieces(shape, other), pieces(shape, truth)) == false);
    CHECK(differing_elements(pieces(shape, other), pieces(shape, truth), whole(shape))->differing ==
          1);
    CHECK(differing_elements(pieces(shape, truth), pieces(shape, truth), whole(shape))->differing ==
          0);

    const std::size_t n = shape.size();
    Extents turned = shape;
    std::swap(turned[n - 1], turned[n - 2]);
    Bytes image = moved(truth, shape, turned, 2, [&](Extents at) {
      std::swap(at[n - 1], at[n - 2]);
      return at;
    });
    CHECK(are_transposed_elements(pieces(turned, image), pieces(shape, truth)) == true);
    image[dice() % image.size()] ^= std::byte{1};
    CHECK(are_transposed_elements(pieces(turned, image), pieces(shape, truth)) == false);

    const std::size_t dim = dice() % n;
    std::vector<std::int64_t> order(static_cast<std::size_t>(shape[dim]));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), dice);
    Bytes permuted = moved(truth, shape, shape, 2, [&](Extents at) {
      at[dim] = order[static_cast<std::size_t>(at[dim])];
      return at;
    });
    auto is_permuted = [&] {
      return are_permuted_elements(pieces(shape, permuted), pieces(shape, truth), dim, 1, order);
    };
    CHECK(is_permuted() == true);
    permuted[dice() % permuted.size()] ^= std::byte{1};
    CHECK(is_permuted() == false);
  }
}
