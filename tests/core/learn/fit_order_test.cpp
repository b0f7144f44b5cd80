#include "core/learn/fit_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/learn/line_hashes.h"
#include "core/learn/line_index.h"

using namespace shw;

namespace {

LineSequence counted(std::size_t count, std::uint64_t first = 0) {
  LineSequence out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace

TEST_CASE("fitted order: axes of a view in any order are found and make the lines again") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    BoundOp op;
    op.kind = MapOp::Kind::kPermute;
    const std::size_t axes = 2 + random() % 3;
    for (std::size_t d = 0; d < axes; ++d) {
      op.view.push_back(static_cast<std::int64_t>(2 + random() % 5));
      op.order.push_back(static_cast<std::int64_t>(d));
    }
    std::shuffle(op.order.begin(), op.order.end(), random);
    const LineSequence from = counted(static_cast<std::size_t>(*volume(op.view)));
    const LineSequence to = apply_ops({&from, 1}, {op});
    const auto fitted = fit_order({&from, 1}, to);
    REQUIRE(fitted.has_value());
    CHECK(apply_ops({&from, 1}, fitted->ops) == to);
  }
}

TEST_CASE("fitted order: a random order is a list of blocks, and none where the list is too long") {
  std::mt19937 random(2);
  for (const std::size_t lines : {64, 8192}) {
    const LineSequence from = counted(lines);
    LineSequence to = from;
    std::shuffle(to.begin(), to.end(), random);
    const auto fitted = fit_order({&from, 1}, to);
    CHECK(fitted.has_value() == (lines == 64));
    if (fitted) CHECK(apply_ops({&from, 1}, fitted->ops) == to);
  }
  const LineSequence from = counted(64);
  CHECK_FALSE(fit_order({&from, 1}, counted(64, 100)).has_value());
}

TEST_CASE("fitted order: parts are joined in the order in which they are there") {
  const std::vector<LineSequence> from{counted(8), counted(4, 100), counted(4, 200)};
  const LineSequence to{200, 201, 0, 1, 2, 3, 100, 101, 202, 203, 4, 5, 6, 7, 102, 103};
  const auto fitted = fit_order(from, to);
  REQUIRE(fitted.has_value());
  CHECK(fitted->from == std::vector<std::size_t>{2, 0, 1});
  REQUIRE(fitted->ops.size() == 1);
  CHECK(fitted->ops.front().pieces == 2);
}

TEST_CASE("fitted order: lines behind the last part are padding") {
  const LineSequence from = counted(5);
  LineSequence to = from;
  to.resize(8, 77);
  const auto fitted = fit_order({&from, 1}, to);
  REQUIRE(fitted.has_value());
  CHECK(fitted->padded == 3);
  REQUIRE(fitted->ops.size() == 1);
  CHECK(fitted->ops.front().kind == MapOp::Kind::kPad);
}

TEST_CASE("line index: a line of two tensors belongs to neither") {
  LineIndex index(4);
  index.add(3, 1);
  index.add(5, 1);
  index.add(5, 1);
  index.add(7, 1);
  index.add(7, 2);
  CHECK(index.tensor_of(3) == 1);
  CHECK(index.tensor_of(5) == 1);
  CHECK_FALSE(index.tensor_of(7).has_value());
  CHECK_FALSE(index.tensor_of(9).has_value());
}

TEST_CASE("lines: short ones are merged, also where tensors are stacked") {
  CHECK(dims_in_line(Extents{8, 64}, 2) == 1);
  CHECK(dims_in_line(Extents{8, 16, 3, 3}, 4) == 2);
  CHECK(dims_in_line(Extents{64}, 2) == 1);
  CHECK(dims_in_line(Extents{}, 4) == 0);
  CHECK(dims_in_line(Extents{2, 4}, 2) == dims_in_line(Extents{4}, 2) + 1);
}

TEST_CASE("fitted order: what undoes an operation gives the lines back") {
  std::mt19937 random(3);
  const LineSequence from = counted(48);
  BoundOp permute, regroup, reorder;
  permute.kind = MapOp::Kind::kPermute;
  permute.view = {2, 4, 6};
  permute.order = {2, 0, 1};
  regroup.kind = MapOp::Kind::kRegroup;
  regroup.parts = {24, 16, 8};
  regroup.pieces = 4;
  reorder.kind = MapOp::Kind::kReorder;
  reorder.parts = {10, 20, 18};
  reorder.order = {2, 0, 1};
  for (const BoundOp& op : {permute, regroup, reorder}) {
    CAPTURE(name(op.kind));
    CHECK(apply_ops({&from, 1}, {op}) != from);
    CHECK(apply_ops({&from, 1}, {op, undone(op)}) == from);
    CHECK(apply_ops({&from, 1}, {undone(op), op}) == from);
  }
}
