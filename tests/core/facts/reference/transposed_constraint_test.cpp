// Finds transposes by the bytes of tensors that are read in pieces.
#include "core/facts/reference/transposed_constraint.h"

#include <doctest/doctest.h>

#include "core/facts/in_pieces.h"

using namespace shw;
using namespace shw::test;

namespace {

Bytes random_floats(const Extents& shape, std::mt19937& dice) {
  std::vector<float> numbers(static_cast<std::size_t>(*volume(shape)));
  for (float& number : numbers) number = static_cast<float>(dice() % 100000) - 50000;
  Bytes bytes(numbers.size() * 4);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Matrix by matrix, element by element.
Bytes with_matrices_turned(const Bytes& bytes, const Extents& shape, std::size_t element) {
  const auto rows = static_cast<std::size_t>(shape[shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(shape[shape.size() - 1]);
  Bytes out(bytes.size());
  for (std::size_t at = 0; at < bytes.size() / element; ++at) {
    const std::size_t matrix = at / (rows * columns), i = at / columns % rows, j = at % columns;
    std::copy_n(&bytes[at * element], element, &out[((matrix * columns + j) * rows + i) * element]);
  }
  return out;
}

}  // namespace

TEST_CASE("a transpose is recognised by bytes in pieces of any cut, and its twins by theirs") {
  std::mt19937 dice(31);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    Extents shape;
    for (std::size_t d = dice() % 3; d > 0; --d)
      shape.push_back(1 + static_cast<std::int64_t>(dice() % 4));
    const bool is_square = round % 2 == 0;
    const auto rows = 3 + static_cast<std::int64_t>(dice() % 20);
    shape.push_back(rows);
    shape.push_back(is_square ? rows : rows + 1 + static_cast<std::int64_t>(dice() % 9));
    Extents turned = shape;
    std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
    const Bytes truth = random_floats(shape, dice);
    Bytes image = with_matrices_turned(truth, shape, 4);
    auto asked = [&](const Extents& saved, const Bytes& bytes) {
      auto found = find_orientation(in_pieces(Dtype::kFloat32, saved, bytes, dice),
                                    in_pieces(Dtype::kFloat32, shape, truth, dice));
      REQUIRE(found.has_value());
      return *found;
    };
    const OrientationFound crossed = asked(turned, image);
    CHECK(crossed.orientation == Orientation::kSwappedDims);
    CHECK(crossed.exact);
    CHECK(crossed.matrices == crossed.transposed);
    const OrientationFound same_bytes = asked(turned, truth);
    CHECK(same_bytes.orientation == (is_square ? Orientation::kEqual : Orientation::kRelabelled));
    CHECK(asked(shape, truth).orientation == Orientation::kEqual);
    // After one flipped bit it is not an exact transpose.
    image[dice() % image.size()] ^= std::byte{1};
    CHECK_FALSE(asked(turned, image).exact);
    CHECK(asked(turned, random_floats(shape, dice)).orientation != Orientation::kEqual);
  }
}

TEST_CASE("elements that no grid picks are compared too") {
  std::mt19937 dice(32);
  const Extents shape{2100, 2100};  // the criterion uses every second row and column
  const Bytes truth = random_floats(shape, dice);
  Bytes image = with_matrices_turned(truth, shape, 4);
  auto asked = [&] {
    return *find_orientation(in_pieces(Dtype::kFloat32, shape, image, dice),
                             in_pieces(Dtype::kFloat32, shape, truth, dice));
  };
  CHECK(asked().exact);
  image[(2100 + 1) * 4] ^= std::byte{1};  // (1, 1)
  const OrientationFound found = asked();
  CHECK_FALSE(found.exact);
  CHECK(found.sampled);
  CHECK(found.orientation == Orientation::kSwappedDims);  // by the criterion, since one bit differs
}

TEST_CASE("transposed: a matrix whose signs were turned is not a transpose of its reference") {
  std::mt19937 dice(33);
  const Extents shape{48, 48};
  const Bytes truth = random_floats(shape, dice);
  Bytes negated = truth;
  for (std::size_t i = 3; i < negated.size(); i += 4) negated[i] ^= std::byte{0x80};
  auto asked = [&](const Bytes& image) {
    return find_orientation(in_pieces(Dtype::kFloat32, shape, image, dice),
                            in_pieces(Dtype::kFloat32, shape, truth, dice))
        ->orientation;
  };
  CHECK(asked(negated) == Orientation::kUnrelated);
  CHECK(asked(with_matrices_turned(negated, shape, 4)) == Orientation::kUnrelated);
  CHECK(asked(with_matrices_turned(truth, shape, 4)) == Orientation::kSwappedDims);
}
