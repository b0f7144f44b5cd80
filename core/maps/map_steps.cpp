#include "core/maps/map_steps.h"

#include <set>

namespace shw {
namespace {

// Blocks of a dim, and their order.
struct BlockOrder {
  Extents sizes, order;
};

// Order for a join of adjacent parts: piece 0 of each, piece 1 of each, ...
BlockOrder joined(const Extents& parts, std::int64_t pieces) {
  BlockOrder out;
  for (std::int64_t part : parts) {
    for (std::int64_t i = 0; i < pieces; ++i) out.sizes.push_back(part / pieces);
  }
  for (std::int64_t i = 0; i < pieces; ++i) {
    for (std::size_t k = 0; k < parts.size(); ++k)
      out.order.push_back(static_cast<std::int64_t>(k) * pieces + i);
  }
  return out;
}
// Inverse of joined().
BlockOrder inverse_join_order(const Extents& parts, std::int64_t pieces) {
  BlockOrder out;
  const auto count = static_cast<std::int64_t>(parts.size());
  for (std::int64_t i = 0; i < pieces; ++i) {
    for (std::int64_t part : parts) out.sizes.push_back(part / pieces);
  }
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t i = 0; i < pieces; ++i) out.order.push_back(i * count + k);
  }
  return out;
}

// Order of the blocks of a dim whose `view` axes are permuted. Trailing axes that keep their place
// form one block.
Extents permuted(Extents view, Extents order) {
  while (!order.empty() && order.back() == static_cast<std::int64_t>(view.size()) - 1) {
    order.pop_back();
    view.pop_back();
  }
  const Extents strides = row_major_strides(view);
  Extents out{0};
  for (std::int64_t axis : order) {
    const auto a = static_cast<std::size_t>(axis);
    Extents next;
    next.reserve(out.size() * static_cast<std::size_t>(view[a]));
    for (std::int64_t begin : out) {
      for (std::int64_t i = 0; i < view[a]; ++i) next.push_back(begin + i * strides[a]);
    }
    out = std::move(next);
  }
  return out;
}

Extents reversed(const Extents& order) {
  Extents out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

// Order of a reorder, or of its inverse.
BlockOrder reordered(const BoundOp& op, bool is_forward) {
  if (is_forward) return {op.parts, op.order};
  BlockOrder back;
  for (std::int64_t part : op.order) back.sizes.push_back(op.parts[static_cast<std::size_t>(part)]);
  back.order = reversed(op.order);
  return back;
}

class MapSteps {
 public:
  MapSteps(const BoundMap& bound, std::size_t first) : bound_(bound), next_(first) {
    for (const BoundRow& row : bound.rows) {
      if (bound.way == MapDirection::kBack) taken_.insert(row.to.begin(), row.to.end());
      if (bound.way == MapDirection::kForward) {
        for (const auto& from : row.from) taken_.insert(from.begin(), from.end());
      }
    }
  }

  std::vector<Step> make(const std::vector<std::string>& objects) {
    Patterns dropped = objects;
    dropped.insert(dropped.end(), bound_.left_out.begin(), bound_.left_out.end());
    dropped.insert(dropped.end(), bound_.incomplete.begin(), bound_.incomplete.end());
    for (const auto& [old, now] : bound_.stripped) steps_.emplace_back(RenameStep{old, now});
    for (const auto& [copy, of] : bound_.omitted_copies) dropped.push_back(copy);
    if (!dropped.empty()) steps_.emplace_back(DropStep{std::move(dropped)});
    for (const BoundRow& row : bound_.rows)
      bound_.way == MapDirection::kForward ? add_forward(row) : append_backward_steps_of_row(row);
    for (auto& [old, now] : renames_at_end_) steps_.emplace_back(RenameStep{old, now});
    for (const auto& [copy, of] : bound_.copies) steps_.emplace_back(CopyStep{of, copy});
    return std::move(steps_);
  }

 private:
  std::string new_temporary_name() { return "_map." + std::to_string(next_++); }
  // A name that no source tensor has; otherwise a temporary one that is renamed at the end.
  std::string free_name(const std::string& name) {
    if (!taken_.contains(name)) return name;
    renames_at_end_.emplace_back(new_temporary_name(), name);
    return renames_at_end_.back().first;
  }
  void rename(const std::string& old, const std::string& name) {
    if (old == name) return;
    steps_.emplace_back(RenameStep{old, free_name(name)});
  }
  void permute_blocks(const std::string& tensor, std::size_t dim, BlockOrder blocks) {
    steps_.emplace_back(PermuteBlocksStep{{tensor},
                                          static_cast<std::int64_t>(dim),
                                          std::move(blocks.sizes),
                                          std::move(blocks.order)});
  }

  std::string join(const std::vector<std::string>& tensors, const BoundOp& op,
                   const std::string& into) {
    steps_.emplace_back(ConcatStep{tensors, static_cast<std::int64_t>(op.dim), into});
    if (op.pieces > 1) permute_blocks(into, op.dim, joined(op.parts, op.pieces));
    return into;
  }
  std::vector<std::string> split(const std::string& tensor, const BoundOp& op) {
    if (op.pieces > 1) permute_blocks(tensor, op.dim, inverse_join_order(op.parts, op.pieces));
    std::vector<std::string> into;
    for (std::size_t i = 0; i < op.parts.size(); ++i) into.push_back(new_temporary_name());
    steps_.emplace_back(SplitStep{tensor, static_cast<std::int64_t>(op.dim), op.parts, into});
    return into;
  }
  void pad(const std::string& tensor, const BoundOp& op, std::size_t ndim) {
    if (op.size == op.to) return;
    Extents before(ndim, 0), after(ndim, 0);
    after[op.dim] = op.to - op.size;
    steps_.emplace_back(PadStep{{tensor}, std::move(before), std::move(after), op.value});
  }
  void trim(const std::string& tensor, const BoundOp& op, Extents sizes) {
    if (op.size == op.to) return;
    sizes[op.dim] = op.size;
    Extents offsets(sizes.size(), 0);
    steps_.emplace_back(TrimStep{{tensor}, Box{std::move(offsets), std::move(sizes)}});
  }

  // Adds the step for an operation that keeps the number of tensors.
  void change(const std::string& tensor, const BoundOp& op, bool is_forward) {
    switch (op.kind) {
      case MapOp::Kind::kRegroup:
        return permute_blocks(
            tensor, op.dim,
            is_forward ? joined(op.parts, op.pieces) : inverse_join_order(op.parts, op.pieces));
      case MapOp::Kind::kUngroup:
        return permute_blocks(
            tensor, op.dim,
            is_forward ? inverse_join_order(op.parts, op.pieces) : joined(op.parts, op.pieces));
      case MapOp::Kind::kPermute: {
        const Extents order = permuted(op.view, op.order);
        return permute_blocks(tensor, op.dim, {{}, is_forward ? order : reversed(order)});
      }
      case MapOp::Kind::kTranspose:
        steps_.emplace_back(PermuteDimsStep{{tensor}, is_forward ? op.order : reversed(op.order)});
        return;
      case MapOp::Kind::kCast:
        steps_.emplace_back(CastStep{{tensor}, is_forward ? op.dtype : op.from_dtype});
        return;
      case MapOp::Kind::kAdd:
        steps_.emplace_back(AddStep{{tensor}, is_forward ? op.value : -op.value});
        return;
      case MapOp::Kind::kReorder:
        return permute_blocks(tensor, op.dim, reordered(op, is_forward));
      case MapOp::Kind::kJoin:
      case MapOp::Kind::kSplit:
      case MapOp::Kind::kPad:
        return;
    }
  }

  std::vector<std::string> apply_ops_forward(const BoundRow& row,
                                             std::vector<std::string> tensors) {
    for (const BoundOp& op : row.ops) {
      if (op.kind == MapOp::Kind::kJoin)
        tensors = {join(tensors, op, new_temporary_name())};
      else if (op.kind == MapOp::Kind::kSplit)
        tensors = split(tensors.front(), op);
      else if (op.kind == MapOp::Kind::kPad)
        pad(tensors.front(), op, row.from_shapes.front().size());
      else
        change(tensors.front(), op, true);
    }
    return tensors;
  }
  std::vector<std::string> apply_ops_backward(const BoundRow& row,
                                              std::vector<std::string> tensors) {
    for (std::size_t i = row.ops.size(); i-- > 0;) {
      const BoundOp& op = row.ops[i];
      if (op.kind == MapOp::Kind::kJoin)
        tensors = split(tensors.front(), op);
      else if (op.kind == MapOp::Kind::kSplit)
        tensors = {join(tensors, op, new_temporary_name())};
      else if (op.kind == MapOp::Kind::kPad)
        trim(tensors.front(), op, row.to_shapes.front());
      else
        change(tensors.front(), op, false);
    }
    return tensors;
  }

  // Stacks the tensors of all cells, the last counter first.
  void stack(std::vector<std::string> cells, Extents lead, const std::string& name) {
    while (!lead.empty()) {
      const auto count = static_cast<std::size_t>(lead.back());
      lead.pop_back();
      std::vector<std::string> made;
      for (std::size_t i = 0; i < cells.size(); i += count) {
        made.push_back(lead.empty() ? free_name(name) : new_temporary_name());
        steps_.emplace_back(ConcatStep{{cells.begin() + static_cast<std::ptrdiff_t>(i),
                                        cells.begin() + static_cast<std::ptrdiff_t>(i + count)},
                                       0,
                                       made.back(),
                                       true});
      }
      cells = std::move(made);
    }
  }
  std::vector<std::string> add_unstack_steps(const std::string& tensor, const Extents& lead) {
    std::vector<std::string> cells{tensor};
    for (std::int64_t count : lead) {
      std::vector<std::string> made;
      for (const std::string& cell : cells) {
        std::vector<std::string> into;
        for (std::int64_t i = 0; i < count; ++i) into.push_back(new_temporary_name());
        steps_.emplace_back(
            SplitStep{cell, 0, Extents(static_cast<std::size_t>(count), 1), into, true});
        made.insert(made.end(), into.begin(), into.end());
      }
      cells = std::move(made);
    }
    return cells;
  }

  void add_forward(const BoundRow& row) {
    std::vector<std::vector<std::string>> cells(row.to.size());
    for (const std::vector<std::string>& from : row.from) {
      const std::vector<std::string> made = apply_ops_forward(row, from);
      for (std::size_t i = 0; i < made.size(); ++i) cells[i].push_back(made[i]);
    }
    for (std::size_t i = 0; i < row.to.size(); ++i) {
      if (row.lead.empty())
        rename(cells[i].front(), row.to[i]);
      else
        stack(std::move(cells[i]), row.lead, row.to[i]);
    }
  }
  void append_backward_steps_of_row(const BoundRow& row) {
    std::vector<std::vector<std::string>> cells;
    for (const std::string& to : row.to) cells.push_back(add_unstack_steps(to, row.lead));
    for (std::size_t c = 0; c < row.from.size(); ++c) {
      std::vector<std::string> tensors;
      for (const auto& of_tensor : cells) tensors.push_back(of_tensor[c]);
      const std::vector<std::string> made = apply_ops_backward(row, std::move(tensors));
      for (std::size_t i = 0; i < made.size(); ++i) rename(made[i], row.from[c][i]);
    }
  }

  const BoundMap& bound_;
  std::vector<Step> steps_;
  std::set<std::string> taken_;  // FQNs of the source
  std::vector<std::pair<std::string, std::string>> renames_at_end_;
  std::size_t next_;
};

}  // namespace

std::vector<Step> steps_of(const BoundMap& bound, const std::vector<std::string>& objects,
                           std::size_t first) {
  return MapSteps(bound, first).make(objects);
}

std::vector<MapTensor> tensors_after(const BoundMap& bound) {
  std::vector<MapTensor> out;
  for (const BoundRow& row : bound.rows) {
    if (bound.way == MapDirection::kForward) {
      for (std::size_t i = 0; i < row.to.size(); ++i) {
        Extents shape = row.lead;
        shape.insert(shape.end(), row.to_shapes[i].begin(), row.to_shapes[i].end());
        out.push_back({row.to[i], std::move(shape)});
      }
      continue;
    }
    for (const std::vector<std::string>& from : row.from) {
      for (std::size_t i = 0; i < from.size(); ++i) out.push_back({from[i], row.from_shapes[i]});
    }
  }
  for (const auto& [copy, of] : bound.copies) {
    const std::size_t count = out.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].fqn == of) {
        out.push_back({copy, out[i].shape});
        break;
      }
    }
  }
  return out;
}

}  // namespace shw
