#include "core/maps/bind_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/checked.h"

namespace shw {
namespace {

using Shapes = std::vector<Extents>;

// Limit on the blocks of a dim, as in PermuteBlocksStep.
constexpr std::int64_t kMaxMapBlocks = 1 << 20;

tl::unexpected<Error> does_not_fit(MapOp::Kind kind, std::string why) {
  return fail(ErrorKind::kUnsupported, fmt::format("{}: {}", name(kind), why));
}

Status check_dim(const MapOp& op, const Extents& shape) {
  if (op.dim < static_cast<std::int64_t>(shape.size())) return {};
  return does_not_fit(op.kind, fmt::format("{} has no dim {}", to_text(shape), op.dim));
}

// Checks that every part splits into equal pieces and that the parts add up to `whole`.
Status check_parts(const BoundOp& op, std::int64_t whole) {
  const auto blocks = checked_mul(op.pieces, static_cast<std::int64_t>(op.parts.size()));
  if (!blocks || *blocks > kMaxMapBlocks)
    return does_not_fit(op.kind, fmt::format("{} pieces are too many", op.pieces));
  std::int64_t sum = 0;
  for (std::int64_t part : op.parts) {
    if (op.pieces <= 0 || part % op.pieces != 0)
      return does_not_fit(op.kind,
                          fmt::format("{} rows are not {} pieces of one size", part, op.pieces));
    const auto next = checked_add(sum, part);
    if (!next) return does_not_fit(op.kind, "its parts are too large");
    sum = *next;
  }
  if (sum == whole) return {};
  return does_not_fit(op.kind, fmt::format("dim {} has {} elements, and the parts {} are {}",
                                           op.dim, whole, to_text(op.parts), sum));
}

// Joins the tensors along the dim: computes the shape.
Status gather(const MapOp& op, MapValues& values, BoundOp& bound, Shapes& shapes) {
  Extents sum = shapes.front();
  for (const Extents& shape : shapes) {
    SHW_CHECK(check_dim(op, shape));
    Extents other = shape;
    if (other.size() != sum.size()) return does_not_fit(op.kind, "dims differ");
    bound.parts.push_back(shape[bound.dim]);
    other[bound.dim] = sum[bound.dim];
    if (other != sum)
      return does_not_fit(op.kind, fmt::format("{} and {} differ in more than dim {}",
                                               to_text(shapes.front()), to_text(shape), op.dim));
  }
  for (std::size_t i = 0; i < op.parts.size(); ++i) {
    const auto said = values.size(op.parts[i]);
    if (said && *said != bound.parts[i])
      return does_not_fit(op.kind, fmt::format("tensor {} has {} rows, where {} = {} are expected",
                                               i + 1, bound.parts[i], op.parts[i], *said));
  }
  sum[bound.dim] = 0;
  for (std::int64_t part : bound.parts) {
    const auto next = checked_add(sum[bound.dim], part);
    if (!next) return does_not_fit(op.kind, "its parts are too large");
    sum[bound.dim] = *next;
  }
  shapes = {sum};
  return check_parts(bound, sum[bound.dim]);
}

// Splits a tensor into `count` along the dim: computes the shapes.
Status scatter(const MapOp& op, std::size_t count, MapValues& values, BoundOp& bound,
               Shapes& shapes) {
  const Extents whole = shapes.front();
  SHW_CHECK(check_dim(op, whole));
  const std::int64_t extent = whole[bound.dim];
  if (op.parts.empty()) {
    const auto parts = static_cast<std::int64_t>(count);
    if (parts == 0 || extent % parts != 0)
      return does_not_fit(op.kind, fmt::format("{} rows are not {} equal parts", extent, parts));
    bound.parts.assign(count, extent / parts);
  } else {
    SHW_TRY(bound.parts, values.needed(op.parts));
  }
  SHW_CHECK(check_parts(bound, extent));
  shapes.clear();
  for (std::int64_t part : bound.parts) {
    shapes.push_back(whole);
    shapes.back()[bound.dim] = part;
  }
  return {};
}

Status bind_view(const MapOp& op, MapValues& values, BoundOp& bound, const Extents& shape) {
  SHW_CHECK(check_dim(op, shape));
  SHW_TRY(bound.view, values.needed(op.view));
  const auto product = checked_volume(bound.view);
  if (!product || *product != shape[bound.dim])
    return does_not_fit(op.kind, fmt::format("dim {} has {} elements, which cannot be seen as {}",
                                             op.dim, shape[bound.dim], to_text(bound.view)));
  // Trailing axes that keep their place form one block.
  std::size_t axes = op.order.size();
  while (axes > 0 && op.order[axes - 1] == static_cast<std::int64_t>(axes) - 1) --axes;
  const auto blocks = checked_volume(ExtentsView(bound.view).first(axes));
  if (!blocks || *blocks > kMaxMapBlocks)
    return does_not_fit(op.kind, "the dim is cut into more than 1,048,576 blocks");
  return {};
}

Status bind_parts(const MapOp& op, MapValues& values, BoundOp& bound, const Extents& shape) {
  SHW_CHECK(check_dim(op, shape));
  SHW_TRY(bound.parts, values.needed(op.parts));
  return check_parts(bound, shape[bound.dim]);
}

bool is_order(const Extents& order, std::size_t count) {
  Extents sorted = order, all(count);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

// Binds the parts of a reorder, in their order before it.
Status bind_reorder(const MapOp& op, MapValues& values, BoundOp& bound, const Extents& shape) {
  SHW_CHECK(check_dim(op, shape));
  const auto count = static_cast<std::int64_t>(op.order.size());
  if (!is_order(op.order, op.order.size()) || count == 0)
    return does_not_fit(op.kind, "\"order\" does not name every part once");
  if (!op.parts.empty()) return bind_parts(op, values, bound, shape);
  if (shape[bound.dim] % count != 0)
    return does_not_fit(op.kind,
                        fmt::format("{} rows are not {} equal parts", shape[bound.dim], count));
  bound.parts.assign(op.order.size(), shape[bound.dim] / count);
  return check_parts(bound, shape[bound.dim]);
}

Extents permuted_shape(const Extents& shape, const Extents& order, MapDirection way) {
  Extents out(shape.size());
  for (std::size_t d = 0; d < order.size(); ++d) {
    const auto old = static_cast<std::size_t>(order[d]);
    if (way == MapDirection::kForward)
      out[d] = shape[old];
    else
      out[old] = shape[d];
  }
  return out;
}

Status bind_pad(const MapOp& op, MapDirection way, MapValues& values, BoundOp& bound,
                Extents& shape) {
  SHW_CHECK(check_dim(op, shape));
  const bool pads = way == MapDirection::kForward;
  bound.value = op.value;
  SHW_TRY(std::int64_t other, values.needed(pads ? op.to : op.size));
  bound.size = pads ? shape[bound.dim] : other;
  bound.to = pads ? other : shape[bound.dim];
  if (bound.size > bound.to)
    return does_not_fit(op.kind, fmt::format("dim {} has {} elements, and is to be padded to {}",
                                             op.dim, bound.size, bound.to));
  shape[bound.dim] = other;
  return {};
}

// Applies an operation to shapes. `count` is the number of results of a split.
Status bind_op(const MapOp& op, MapDirection way, std::size_t count, MapValues& values,
               BoundOp& bound, Shapes& shapes) {
  bound.kind = op.kind;
  bound.dim = static_cast<std::size_t>(op.dim);
  bound.order = op.order;
  bound.dtype = op.dtype;
  bound.from_dtype = op.from_dtype;
  SHW_TRY(bound.pieces, values.needed(op.pieces));
  switch (op.kind) {
    case MapOp::Kind::kJoin:
    case MapOp::Kind::kSplit:
      if ((op.kind == MapOp::Kind::kJoin) == (way == MapDirection::kForward))
        return gather(op, values, bound, shapes);
      return scatter(op, count, values, bound, shapes);
    case MapOp::Kind::kRegroup:
    case MapOp::Kind::kUngroup:
      return bind_parts(op, values, bound, shapes.front());
    case MapOp::Kind::kPermute:
      if (!is_order(op.order, op.view.size()))
        return does_not_fit(op.kind, "\"order\" does not name every axis of \"view\" once");
      return bind_view(op, values, bound, shapes.front());
    case MapOp::Kind::kTranspose:
      if (!is_order(op.order, shapes.front().size()))
        return does_not_fit(
            op.kind, "\"order\" does not name every dim of " + to_text(shapes.front()) + " once");
      shapes.front() = permuted_shape(shapes.front(), op.order, way);
      return {};
    case MapOp::Kind::kPad:
      return bind_pad(op, way, values, bound, shapes.front());
    case MapOp::Kind::kCast:
      return {};
    case MapOp::Kind::kAdd:
      bound.value = op.value;
      return {};
    case MapOp::Kind::kReorder:
      return bind_reorder(op, values, bound, shapes.front());
  }
  return {};
}

}  // namespace

Status bind_ops_forward(const MapRow& row, MapValues& values, BoundRow& bound) {
  Shapes shapes = bound.from_shapes;
  bound.ops.assign(row.ops.size(), {});
  for (std::size_t i = 0; i < row.ops.size(); ++i)
    SHW_CHECK(
        bind_op(row.ops[i], MapDirection::kForward, row.to.size(), values, bound.ops[i], shapes));
  bound.to_shapes = std::move(shapes);
  return {};
}

Status bind_ops_backward(const MapRow& row, MapValues& values, BoundRow& bound) {
  Shapes shapes = bound.to_shapes;
  bound.ops.assign(row.ops.size(), {});
  for (std::size_t i = row.ops.size(); i-- > 0;)
    SHW_CHECK(
        bind_op(row.ops[i], MapDirection::kBack, row.from.size(), values, bound.ops[i], shapes));
  bound.from_shapes = std::move(shapes);
  return {};
}

}  // namespace shw
