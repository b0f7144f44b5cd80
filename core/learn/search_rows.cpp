#include "core/learn/search_rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/learn/line_cell.h"
#include "core/learn/line_index.h"

namespace shw {
namespace {

using Tensors = std::vector<std::size_t>;

bool differ_in_dim_alone(ExtentsView a, ExtentsView b, std::size_t d) {
  if (a.size() != b.size()) return false;
  for (std::size_t e = 0; e < a.size(); ++e) {
    if (e != d && a[e] != b[e]) return false;
  }
  return true;
}

struct CellFit {
  std::size_t dim = 0;
  FittedOrder order;
};

std::optional<CellFit> find_ops_for_cell(const std::vector<LineCell>& from, const LineCell& to) {
  if (from.size() == 1 && same(from.front().dims, to.dims) &&
      std::equal(from.front().hashes.begin(), from.front().hashes.end(), to.hashes.begin()))
    return CellFit{0, {{0}, {}, 0}};
  for (std::size_t d = 0; d < to.dims.size(); ++d) {
    if (!std::all_of(from.begin(), from.end(), [&](const LineCell& one) {
          return differ_in_dim_alone(one.dims, to.dims, d);
        }))
      continue;
    std::vector<LineSequence> parts;
    for (const LineCell& one : from) parts.push_back(lines_along(one, d));
    if (auto order = fit_order(parts, lines_along(to, d))) return CellFit{d, std::move(*order)};
  }
  return std::nullopt;
}

bool same_ops(const std::vector<BoundOp>& a, const std::vector<BoundOp>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const BoundOp& x, const BoundOp& y) {
    return x.kind == y.kind && x.pieces == y.pieces && x.parts == y.parts && x.view == y.view &&
           x.order == y.order && x.size == y.size && x.to == y.to;
  });
}

class RowSearch {
 public:
  RowSearch(const SideLines& from, const SideLines& to)
      : from_(from), to_(to), index_(count_lines(from)) {
    for (std::size_t f = 0; f < from.lines.size(); ++f) {
      if (is_left_out(from, f)) continue;
      for (const std::uint64_t line : from.lines[f].hashes) {
        if (!is_constant_line(line)) index_.add(line, static_cast<std::uint32_t>(f));
      }
    }
  }

  RowSearchResult run() {
    for (std::size_t t = 0; t < to_.lines.size(); ++t) {
      if (!is_left_out(to_, t)) look_at(t);
    }
    add_split_rows();
    return std::move(out_);
  }

 private:
  struct PartOfTensor {
    std::size_t tensor = 0, cell = 0;
    auto operator<=>(const PartOfTensor&) const = default;
  };

  static bool is_left_out(const SideLines& side, std::size_t i) {
    return !side.lines[i].is_read || (*side.left_out)[i];
  }
  static std::size_t count_lines(const SideLines& side) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < side.lines.size(); ++i)
      count += is_left_out(side, i) ? 0 : side.lines[i].hashes.size();
    return count;
  }

  // Tensors that have many of these lines, in order of their first line; a few common lines would
  // be chance.
  Tensors tensors_with_many_lines(std::size_t t, std::span<const std::uint64_t> lines) const {
    Tensors order;
    std::map<std::size_t, std::size_t> counts;
    for (const std::uint64_t line : lines) {
      if (is_constant_line(line)) continue;
      const auto owner = index_.tensor_of(line);
      if (!owner || from_.dtypes[*owner] != to_.dtypes[t]) continue;
      if (counts[*owner]++ == 0) order.push_back(*owner);
    }
    std::erase_if(order, [&](std::size_t f) {
      return counts[f] * 8 < std::min(from_.lines[f].hashes.size(), lines.size());
    });
    return order;
  }
  LineCell all_lines_of(const SideLines& side, std::size_t i) const {
    return {side.lines[i].hashes, side.lines[i].dims};
  }
  LineCell cell_of(std::size_t t, std::size_t lead, std::size_t cell) const {
    return cell_of_lines(to_.lines[t].hashes, to_.lines[t].dims, lead, cell);
  }
  std::size_t dim_of_op(LineKind kind, std::size_t d, std::size_t counted, std::size_t ndim) const {
    return kind == LineKind::kColumns && d + 1 == counted ? ndim - 1 : d;
  }

  void look_at(std::size_t t) {
    const LineHashes& lines = to_.lines[t];
    const Tensors all = tensors_with_first_lines(t);
    if (all.empty()) return;
    const std::size_t counted = from_.lines[all.front()].dims.size();
    if (counted > lines.dims.size()) {
      ++out_.finer;
      return;
    }
    const std::size_t lead = lines.dims.size() - counted;
    FoundRow row{.to = {t}, .from = {}};
    row.lead.assign(lines.dims.begin(), lines.dims.begin() + static_cast<std::ptrdiff_t>(lead));
    const auto cells = static_cast<std::size_t>(volume(row.lead).value_or(0));
    std::optional<std::size_t> dim;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const LineCell here = cell_of(t, lead, cell);
      const Tensors parts = tensors_with_many_lines(t, here.hashes);
      if (parts.empty()) return;
      if (parts.size() == 1 && from_.lines[parts.front()].hashes.size() > here.hashes.size()) {
        splits_[parts.front()].push_back({t, cell});
        continue;
      }
      if (!add_cell(here, parts, dim, row)) return;
    }
    if (row.from.size() != cells) return;
    set_dims_of_ops(*dim, counted, from_.ndims[row.from.front().front()], row);
    out_.rows.push_back(std::move(row));
  }
  // Owners of the first lines that are known, to decide how many dims are stacked.
  Tensors tensors_with_first_lines(std::size_t t) const {
    for (const std::uint64_t line : to_.lines[t].hashes) {
      if (is_constant_line(line)) continue;
      const auto owner = index_.tensor_of(line);
      if (owner && from_.dtypes[*owner] == to_.dtypes[t]) return {*owner};
    }
    return {};
  }

  bool add_cell(const LineCell& here, const Tensors& parts, std::optional<std::size_t>& dim,
                FoundRow& row) const {
    std::vector<LineCell> from;
    for (std::size_t f : parts) from.push_back(all_lines_of(from_, f));
    auto fit = find_ops_for_cell(from, here);
    if (!fit) return false;
    if (dim && (*dim != fit->dim || !same_ops(row.ops, fit->order.ops))) return false;
    dim = fit->dim;
    row.ops = fit->order.ops;
    row.padded = fit->order.padded;
    if (row.padded != 0) {
      const LineSequence lines = lines_along(here, *dim);
      for (std::size_t i = lines.size() - row.padded; i < lines.size(); ++i)
        row.is_plain_padding &= here.dims.size() == 1 && is_constant_line(lines[i]);
    }
    Tensors ordered;
    for (std::size_t i : fit->order.from) ordered.push_back(parts[i]);
    row.from.push_back(std::move(ordered));
    return true;
  }

  // Sets the dims of operations to those of the tensors; a transpose comes last.
  void set_dims_of_ops(std::size_t dim, std::size_t counted, std::size_t ndim,
                       FoundRow& row) const {
    for (BoundOp& op : row.ops) op.dim = dim_of_op(from_.kind, dim, counted, ndim);
    if (from_.kind != to_.kind) row.ops.push_back(transposed(ndim));
  }
  static BoundOp transposed(std::size_t ndim) {
    BoundOp op;
    op.kind = MapOp::Kind::kTranspose;
    for (std::size_t d = 0; d < ndim; ++d) op.order.push_back(static_cast<std::int64_t>(d));
    std::swap(op.order[ndim - 1], op.order[ndim - 2]);
    return op;
  }

  // Tensors from which several others are made by a split.
  void add_split_rows() {
    std::map<Tensors, std::map<std::size_t, FoundRow>> by_tensors;  // then by cell
    for (auto& [f, parts] : splits_) {
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
      const std::size_t cell = parts.front().cell;
      const std::size_t counted = from_.lines[f].dims.size();
      std::vector<LineCell> cells;
      for (const PartOfTensor& part : parts) {
        if (part.cell != cell) break;
        cells.push_back(cell_of(part.tensor, to_.lines[part.tensor].dims.size() - counted, cell));
      }
      if (parts.size() == 1) ++out_.shorter;
      if (cells.size() != parts.size()) continue;
      auto fit = find_ops_for_cell(cells, all_lines_of(from_, f));
      if (!fit || fit->order.padded != 0 || fit->order.ops.empty() || parts.size() < 2) continue;
      FoundRow row{.to = {}, .from = {{f}}, .ops = split_ops(*fit, f, counted)};
      for (std::size_t i : fit->order.from) row.to.push_back(parts[i].tensor);
      by_tensors[row.to].emplace(cell, std::move(row));
    }
    for (auto& [tensors, cells] : by_tensors) add_split(tensors, cells);
  }
  // Inverse of the join that makes `f`: splits it.
  std::vector<BoundOp> split_ops(const CellFit& fit, std::size_t f, std::size_t counted) const {
    const std::size_t ndim = from_.ndims[f];
    std::vector<BoundOp> ops;
    if (from_.kind != to_.kind) ops.push_back(transposed(ndim));
    for (std::size_t i = fit.order.ops.size(); i-- > 0;) {
      BoundOp op = i == 0 ? fit.order.ops.front() : undone(fit.order.ops[i]);
      if (i == 0) op.kind = MapOp::Kind::kSplit;
      op.dim = dim_of_op(to_.kind, fit.dim, counted, ndim);
      ops.push_back(std::move(op));
    }
    return ops;
  }
  void add_split(const Tensors& tensors, std::map<std::size_t, FoundRow>& cells) {
    FoundRow row = std::move(cells.begin()->second);
    const std::size_t counted = from_.lines[row.from.front().front()].dims.size();
    const Extents& dims = to_.lines[tensors.front()].dims;
    row.lead.assign(dims.begin(), dims.end() - static_cast<std::ptrdiff_t>(counted));
    const auto wanted = static_cast<std::size_t>(volume(row.lead).value_or(0));
    if (cells.size() != wanted || cells.rbegin()->first + 1 != wanted) return;
    for (auto at = std::next(cells.begin()); at != cells.end(); ++at) {
      if (!same_ops(at->second.ops, row.ops)) return;
      row.from.push_back(at->second.from.front());
    }
    out_.rows.push_back(std::move(row));
  }

  const SideLines& from_;
  const SideLines& to_;
  LineIndex index_;
  RowSearchResult out_;
  std::map<std::size_t, std::vector<PartOfTensor>> splits_;
};

}  // namespace

RowSearchResult search_rows(const SideLines& from, const SideLines& to) {
  return RowSearch(from, to).run();
}

}  // namespace shw
