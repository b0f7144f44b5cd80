// Orders of blocks in tensors that are read in pieces.
#include "core/facts/reference/block_compare.h"

#include <doctest/doctest.h>

#include <numeric>

#include "core/facts/in_pieces.h"

using namespace shw;
using namespace shw::test;

namespace {

struct BlocksMoved {
  Extents shape;
  Dtype dtype = Dtype::kUint8;
  std::size_t dim = 0;
  std::int64_t block = 1;
  std::vector<std::int64_t> order;  // block i of the truth is block order[i] of the image
};

Bytes random_bytes(const Extents& shape, Dtype dtype, std::mt19937& dice) {
  Bytes bytes(static_cast<std::size_t>(*volume(shape)) * size_of(dtype));
  for (std::byte& b : bytes) b = static_cast<std::byte>(dice());
  return bytes;
}

// Builds the image element by element.
Bytes image_of(const Bytes& truth, const BlocksMoved& moved) {
  const std::size_t element = size_of(moved.dtype);
  const Extents strides = row_major_strides(moved.shape);
  Bytes image(truth.size());
  for (std::int64_t i = 0; i < *volume(moved.shape); ++i) {
    const std::int64_t at = i / strides[moved.dim] % moved.shape[moved.dim];
    const auto block = static_cast<std::size_t>(at / moved.block);
    const std::int64_t to = moved.order[block] * moved.block + at % moved.block;
    std::copy_n(
        truth.begin() + i * static_cast<std::int64_t>(element), element,
        image.begin() + (i + (to - at) * strides[moved.dim]) * static_cast<std::int64_t>(element));
  }
  return image;
}

BlocksMoved drawn(std::mt19937& dice) {
  constexpr Dtype kDtypes[] = {Dtype::kUint8, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat64,
                               Dtype::kComplex128};
  BlocksMoved moved;
  moved.dtype = kDtypes[dice() % 5];
  const std::size_t ndim = 1 + dice() % 3;
  for (std::size_t d = 0; d < ndim; ++d)
    moved.shape.push_back(2 + static_cast<std::int64_t>(dice() % 7));
  moved.dim = dice() % ndim;
  moved.block = 1 + static_cast<std::int64_t>(dice() % 3);
  const std::size_t blocks = 2 + dice() % 5;
  moved.shape[moved.dim] = moved.block * static_cast<std::int64_t>(blocks);
  moved.order.resize(blocks);
  std::iota(moved.order.begin(), moved.order.end(), std::int64_t{0});
  while (std::is_sorted(moved.order.begin(), moved.order.end()))
    std::shuffle(moved.order.begin(), moved.order.end(), dice);
  return moved;
}

}  // namespace

TEST_CASE("an order of blocks is found in pieces of any cut and in any dimension") {
  std::mt19937 dice(11);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const BlocksMoved moved = drawn(dice);
    Bytes truth = random_bytes(moved.shape, moved.dtype, dice);
    // With one column or one byte per row, elements repeat, so another order may fit too.
    Bytes image = image_of(truth, moved);
    auto found = compare_blocks(in_pieces(moved.dtype, moved.shape, image, dice),
                                in_pieces(moved.dtype, moved.shape, truth, dice));
    REQUIRE(found.has_value());
    if (found->answer == BlockAnswer::kPermuted) {
      BlocksMoved told{moved.shape, moved.dtype, found->order.dim, found->order.block,
                       found->order.order};
      CHECK(image_of(truth, told) == image);
    } else {
      CHECK(size_of(moved.dtype) == 1);
      CHECK(found->answer == BlockAnswer::kAmbiguous);
    }
    // With one more changed bit no order is found.
    image[dice() % image.size()] ^= std::byte{4};
    auto other = compare_blocks(in_pieces(moved.dtype, moved.shape, image, dice),
                                in_pieces(moved.dtype, moved.shape, truth, dice));
    CHECK(other->answer == BlockAnswer::kDiffers);
    CHECK(compare_blocks(in_pieces(moved.dtype, moved.shape, truth, dice),
                         in_pieces(moved.dtype, moved.shape, truth, dice))
              ->answer == BlockAnswer::kSame);
  }
}

TEST_CASE("of a long dimension indices are together and larger blocks are still found") {
  std::mt19937 dice(12);
  for (const Extents& shape : {Extents{48}, Extents{48, 3}, Extents{2, 48}}) {
    BlocksMoved moved{shape, Dtype::kFloat32, 0, 12, {2, 0, 3, 1}};
    moved.dim = shape[0] == 48 ? 0 : 1;
    const Bytes truth = random_bytes(shape, moved.dtype, dice), image = image_of(truth, moved);
    for (std::int64_t most : {4, 5, 8, 47}) {
      CAPTURE(most);
      auto found = compare_blocks(in_pieces(moved.dtype, shape, image, dice),
                                  in_pieces(moved.dtype, shape, truth, dice), most);
      REQUIRE(found.has_value());
      CHECK(found->answer == BlockAnswer::kPermuted);
      CHECK(found->order.dim == moved.dim);
      CHECK(found->order.block == 12);
      CHECK(found->order.order == moved.order);
    }
    auto coarse = compare_blocks(in_pieces(moved.dtype, shape, image, dice),
                                 in_pieces(moved.dtype, shape, truth, dice), 3);
    CHECK(coarse->answer == BlockAnswer::kDiffers);
  }
}

TEST_CASE("a tensor that cannot be read to its end is compared with nothing") {
  std::mt19937 dice(13);
  const Extents shape{4, 4};
  const PiecedTensor good =
      in_pieces(Dtype::kUint8, shape, random_bytes(shape, Dtype::kUint8, dice), dice);
  const PiecedTensor bad{Dtype::kUint8, shape, [](const Box&, const PieceSink&) { return false; }};
  CHECK_FALSE(compare_blocks(good, bad).has_value());
  CHECK_FALSE(compare_blocks(bad, good).has_value());
  CHECK_FALSE(fingerprint_of(bad).has_value());
}
