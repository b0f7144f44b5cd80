#include "core/maps/diagnose_stack.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/base/words.h"
#include "core/facts/reference/match.h"
#include "core/maps/joined_rows.h"
#include "core/maps/order_text.h"
#include "core/maps/two_sides.h"

namespace shw {
namespace {

std::string counter_name_of_dim(const RowLayout& layout, std::size_t dim) {
  return dim < layout.counters.size() ? layout.counters[dim] : "cell";
}

std::int64_t index_of_cell_along_dim(std::size_t cell, const Extents& dims, const Extents& strides,
                                     std::size_t dim) {
  return static_cast<std::int64_t>(cell) / strides[dim] % dims[dim];
}

// Number of cells that moved by `shift` along `dim`; 0 if any did not. The cells at the end are
// ignored.
std::size_t count_shifted(const PieceComparison& cells, const Extents& dims, std::size_t dim,
                          std::int64_t shift) {
  const Extents strides = row_major_strides(dims);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < cells.count(); ++i) {
    const std::int64_t at = index_of_cell_along_dim(i, dims, strides, dim);
    if (at + shift < 0 || at + shift >= dims[dim]) continue;
    if (!cells.is(i, static_cast<std::size_t>(static_cast<std::int64_t>(i) + shift * strides[dim])))
      return 0;
    moved += cells.is(i, i) ? 0U : 1U;
  }
  return moved;
}

std::optional<std::string> shifted_cells_text(const PieceComparison& cells, const Extents& dims,
                                              const RowLayout& layout, std::size_t fewest) {
  for (std::size_t dim = dims.size(); dim-- > 0;) {
    for (const std::int64_t shift : {std::int64_t{1}, std::int64_t{-1}}) {
      // The shift must show in every line of cells along `dim`.
      const std::size_t lines = cells.count() / static_cast<std::size_t>(dims[dim]);
      if (count_shifted(cells, dims, dim, shift) >= fewest * lines)
        return off_by_one_text(counter_name_of_dim(layout, dim), shift > 0);
    }
  }
  return std::nullopt;
}

// Describes cells that moved along one dim: the order, and which lines of cells it affects.
std::optional<std::string> moved_cells_text(const RowOrder& order, const Extents& dims,
                                            std::size_t dim, const RowLayout& layout) {
  const Extents strides = row_major_strides(dims);
  std::map<std::size_t, RowOrder> lines;  // by the line's first cell
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    const std::int64_t at = index_of_cell_along_dim(i, dims, strides, dim);
    const std::int64_t of = index_of_cell_along_dim(from, dims, strides, dim);
    const auto line = static_cast<std::size_t>(static_cast<std::int64_t>(i) - at * strides[dim]);
    if (static_cast<std::int64_t>(from) - of * strides[dim] != static_cast<std::int64_t>(line))
      return std::nullopt;
    lines[line].push_back(of);
  }
  std::map<std::string, std::vector<std::size_t>> texts;
  for (const auto& [line, moves] : lines) {
    if (auto text = layer_order_text(moves, counter_name_of_dim(layout, dim)))
      texts[*text].push_back(line);
  }
  if (texts.empty()) return std::nullopt;
  const auto& [text, where] = *texts.begin();
  if (where.size() == lines.size() || dims.size() != 2) return text;
  const std::size_t other = 1 - dim;
  std::vector<std::string> names;
  for (const std::size_t line : where)
    names.push_back(std::to_string(index_of_cell_along_dim(line, dims, strides, other)));
  return fmt::format("{}, in {}{} {}", text, counter_name_of_dim(layout, other),
                     names.size() == 1 ? "" : "s", short_list_text(names, 4));
}

}  // namespace

RowOrder match_pieces(const PieceComparison& sides) {
  auto text = [&](BytesView bytes, std::size_t i) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + i * sides.length,
                            sides.length);
  };
  if (sides.there.size() != sides.expected.size()) return {};
  PlacesByContent<std::string_view, std::int64_t> any, free;
  for (std::size_t i = sides.count(); i-- > 0;) {
    any.add(text(sides.expected, i), static_cast<std::int64_t>(i));
    if (!sides.is(i, i)) free.add(text(sides.expected, i), static_cast<std::int64_t>(i));
  }
  RowOrder out;
  for (std::size_t i = 0; i < sides.count(); ++i) {
    if (sides.is(i, i)) {
      out.push_back(static_cast<std::int64_t>(i));
      continue;
    }
    auto found = free.take(text(sides.there, i));
    if (!found) found = any.last(text(sides.there, i));
    if (!found) return {};
    out.push_back(*found);
  }
  return out;
}

std::optional<std::string> diagnose_stack_order(const LoadedTensor& there,
                                                const LoadedTensor& expected,
                                                const RowLayout& layout) {
  const Extents lead(expected.shape.begin(),
                     expected.shape.begin() + static_cast<std::ptrdiff_t>(layout.lead));
  const auto count = static_cast<std::size_t>(volume(lead).value_or(0));
  if (count == 0 || lead.empty()) return std::nullopt;
  const PieceComparison cells{there.bytes, expected.bytes, expected.bytes.size() / count};
  if (auto text = shifted_cells_text(cells, lead, layout, 2)) return text;
  const RowOrder order = match_pieces(cells);
  for (std::size_t dim = 0; dim < lead.size() && !order.empty(); ++dim) {
    if (auto text = moved_cells_text(order, lead, dim, layout)) return text;
  }
  return shifted_cells_text(cells, lead, layout, 1);
}

std::optional<std::string> diagnose_stack_of_parts(const LoadedTensor& there,
                                                   const LoadedTensor& expected,
                                                   const RowLayout& layout) {
  const std::vector<std::size_t> part_of = parts_of_rows(layout);
  const std::size_t lead = layout.lead, ndim = expected.shape.size();
  if (lead == 0 || layout.dim != 0 || layout.parts.size() < 2 || lead >= ndim ||
      part_of.size() != static_cast<std::size_t>(expected.shape[lead]) ||
      there.bytes.size() != expected.bytes.size())
    return std::nullopt;
  const auto cells =
      static_cast<std::size_t>(volume(ExtentsView(expected.shape).first(lead)).value_or(0));
  if (cells == 0 || part_of.empty()) return std::nullopt;
  const std::size_t length = expected.bytes.size() / cells;
  std::vector<Bytes> is(layout.parts.size()), was(layout.parts.size());
  for (std::size_t cell = 0; cell < cells; ++cell) {
    append_rows_by_part(BytesView(there.bytes).subspan(cell * length, length), part_of, is);
    append_rows_by_part(BytesView(expected.bytes).subspan(cell * length, length), part_of, was);
  }
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t k = 0; k < is.size(); ++k) {
    if (is[k] == was[k]) continue;
    Extents shape = expected.shape;
    shape[lead] = layout.parts[k];
    const auto text = diagnose_stack_order({there.dtype, shape, std::move(is[k])},
                                           {expected.dtype, shape, std::move(was[k])}, layout);
    if (!text) return std::nullopt;
    names[*text].push_back(layout.part_names[k]);
  }
  return names.empty() ? std::nullopt : std::optional(texts_with_names(names));
}

void append_rows_by_part(BytesView cell, const std::vector<std::size_t>& part_of,
                         std::vector<Bytes>& parts) {
  const std::size_t length = cell.size() / part_of.size();
  for (std::size_t i = 0; i < part_of.size(); ++i) {
    const BytesView row = cell.subspan(i * length, length);
    parts[part_of[i]].insert(parts[part_of[i]].end(), row.begin(), row.end());
  }
}

std::string texts_with_names(const std::map<std::string, std::vector<std::string>>& names) {
  std::string out;
  for (const auto& [text, of] : names)
    out += fmt::format("{}in {}: {}", out.empty() ? "" : "; ", short_list_text(of, 4), text);
  return out;
}

std::string stack_position_text(const std::vector<std::size_t>& cells, const Extents& lead,
                                const RowLayout& layout) {
  const auto count = static_cast<std::size_t>(volume(lead).value_or(0));
  if (lead.empty() || cells.size() >= count) return {};
  const Extents strides = row_major_strides(lead);
  for (std::size_t dim = 0; dim < lead.size(); ++dim) {
    std::set<std::int64_t> indices;
    for (const std::size_t cell : cells)
      indices.insert(index_of_cell_along_dim(cell, lead, strides, dim));
    const std::size_t all = count / static_cast<std::size_t>(lead[dim]) * indices.size();
    if (all != cells.size()) continue;
    std::vector<std::string> names;
    for (const std::int64_t index : indices) names.push_back(std::to_string(index));
    return fmt::format("in {}{} {}", counter_name_of_dim(layout, dim), names.size() == 1 ? "" : "s",
                       short_list_text(names, 4));
  }
  std::string first;
  for (std::size_t dim = 0; dim < lead.size(); ++dim)
    first += fmt::format("{}{} {}", dim == 0 ? "" : ", ", counter_name_of_dim(layout, dim),
                         index_of_cell_along_dim(cells.front(), lead, strides, dim));
  return cells.size() == 1
             ? fmt::format("in {}", first)
             : fmt::format("in {} places of {}, the first in {}", cells.size(), count, first);
}

}  // namespace shw
