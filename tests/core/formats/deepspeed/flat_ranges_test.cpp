#include "core/formats/common/flat_ranges.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/formats/deepspeed/zero_layout.h"

using namespace shw;

TEST_CASE("flat ranges: boxes hold exactly the elements of every run, in their order") {
  const std::vector<Extents> shapes = {{}, {1}, {7}, {3, 4}, {2, 3, 4}, {3, 1, 2}, {1, 5, 1, 2}};
  for (const Extents& shape : shapes) {
    const std::int64_t all = *volume(shape);
    const Extents strides = row_major_strides(shape);
    for (std::int64_t first = 0; first <= all; ++first) {
      for (std::int64_t last = first; last <= all; ++last) {
        std::int64_t next = first;
        std::size_t boxes = 0;
        for_each_flat_box(shape, first, last, [&](const Box& box, std::int64_t begin) {
          ++boxes;
          CHECK(begin == next);
          CHECK(is_inside(box.offsets, box.sizes, shape));
          std::int64_t at = 0;
          for (std::size_t i = 0; i < shape.size(); ++i) at += box.offsets[i] * strides[i];
          CHECK(at == begin);
          // The box is one run: after the first axis longer than 1, all axes are whole.
          bool whole = false;
          for (std::size_t i = 0; i < shape.size(); ++i) {
            if (whole) CHECK(box.sizes[i] == shape[i]);
            whole = whole || box.sizes[i] > 1;
          }
          next += *volume(box.sizes);
        });
        CHECK(next == last);
        CHECK(boxes <= std::max<std::size_t>(2 * shape.size(), 2) - 1);
      }
    }
  }
}

TEST_CASE("flat ranges: partitions and cuts hold every element of every parameter once") {
  const std::vector<ZeroShape> shapes = {
      {"a", {3, 5}}, {"b", {1}}, {"c", {}}, {"d", {0, 4}}, {"e", {13}}};
  const std::int64_t total = 15 + 1 + 1 + 13;
  for (std::int64_t ranks = 1; ranks <= 40; ++ranks) {
    const std::int64_t partition = (total + ranks - 1) / ranks;
    const std::int64_t cut = [&] {
      std::int64_t sum = 0;
      for (const ZeroShape& one : shapes) sum += (*volume(one.shape) + ranks - 1) / ranks;
      return sum;
    }();
    const std::int64_t halves[] = {cut / 2, cut - cut / 2};
    for (const ZeroLayout& layout :
         {lay_out_partitions(shapes, {}, 0, {ranks}, partition),
          lay_out_stage3(shapes, {&cut, 1}, 0, ranks), lay_out_stage3(shapes, halves, 0, ranks)}) {
      REQUIRE(layout.parameters.size() == shapes.size());
      for (std::size_t p = 0; p < shapes.size(); ++p) {
        std::int64_t next = 0;
        for (const ZeroPart& part : layout.parameters[p].parts) {
          CHECK(part.first == next);
          CHECK(part.at >= 0);
          next += part.count;
        }
        CHECK(next == *volume(shapes[p].shape));
      }
    }
  }
}
