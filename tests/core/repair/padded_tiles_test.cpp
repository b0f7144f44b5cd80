// The tiles of a padded tensor depend on the sequence of steps; its elements do not.
#include <doctest/doctest.h>

#include "core/model/builder.h"
#include "core/repair/proof/compare_target.h"
#include "core/unnamed_format.h"

using namespace shw;
using namespace shw::test;

namespace {

// One saved element in the middle of five.
WrittenTensor padded_row() {
  WrittenTensor out;
  out.tensor.fqn = "w";
  out.tensor.dtype = Dtype::kFloat32;
  out.tensor.shape = {5};
  Part saved;
  saved.box = {{2}, {1}};
  saved.from = FromChunk{};
  FromConstant zero;
  zero.is_padding = true;
  Part before, behind;
  before.box = {{0}, {2}};
  behind.box = {{3}, {2}};
  before.from = behind.from = zero;
  out.tensor.parts = {saved, before, behind};
  out.tensor.tiles = {{{{2}, {1}}, 0}, {{{0}, {2}}, 0}, {{{3}, {2}}, 0}};
  return out;
}

Status fits(const std::vector<Box>& tiles) {
  CheckpointBuilder builder;
  builder.set_format(kUnnamedFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{5});
  for (const Box& box : tiles) builder.add_chunk(box.offsets, box.sizes, {});
  auto result = builder.finish();
  WrittenTensor written = padded_row();
  return compare_tiles(written, *result, "w");
}

}  // namespace

TEST_CASE("padding may be cut as several steps would, and what was saved may not") {
  CHECK(fits({{{2}, {1}}, {{0}, {2}}, {{3}, {2}}}).has_value());
  // The result of two steps of one element on each side.
  CHECK(fits({{{2}, {1}}, {{1}, {1}}, {{3}, {1}}, {{0}, {1}}, {{4}, {1}}}).has_value());
  CHECK_FALSE(fits({{{1}, {2}}, {{0}, {1}}, {{3}, {2}}}).has_value());
  CHECK_FALSE(fits({{{2}, {1}}, {{0}, {2}}, {{3}, {1}}}).has_value());
  CHECK_FALSE(fits({{{2}, {1}}, {{0}, {2}}, {{1}, {1}}, {{3}, {1}}}).has_value());
  CHECK_FALSE(fits({{{0}, {5}}}).has_value());
}
