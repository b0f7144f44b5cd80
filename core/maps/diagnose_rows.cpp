// Elements that stand elsewhere: the known orders are tried on the bytes one after the other.
#include "core/maps/diagnose_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "core/maps/joined_rows.h"

namespace shw {
namespace {

constexpr std::size_t kMostTurned = std::size_t{64} << 20;  // bytes of a cell
constexpr std::size_t kShortestFound = 16;  // bytes of a row that is told from all others

// Pieces of equal length that lie one after the other, there and as expected.
struct TwoSides {
  BytesView there, expected;
  std::size_t length = 0;  // of a piece

  std::size_t count() const { return length == 0 ? 0 : there.size() / length; }
  bool is(std::size_t here, std::size_t of) const {
    return std::memcmp(there.data() + here * length, expected.data() + of * length, length) == 0;
  }
};

// Every piece `i` there is the piece from[i] that was expected.
bool fits(const TwoSides& sides, const RowOrder& from) {
  if (sides.there.size() != sides.expected.size() || from.size() != sides.count()) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!sides.is(i, static_cast<std::size_t>(from[i]))) return false;
  }
  return !from.empty();
}

// Where each piece belongs, found by its bytes; empty where one is found nowhere.
RowOrder found_order(const TwoSides& sides) {
  std::unordered_map<std::string_view, std::int64_t> known;
  auto text = [&](BytesView bytes, std::size_t i) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + i * sides.length,
                            sides.length);
  };
  RowOrder out;
  if (sides.there.size() != sides.expected.size()) return out;
  for (std::size_t i = 0; i < sides.count(); ++i)
    known.emplace(text(sides.expected, i), static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < sides.count(); ++i) {
    auto found = known.find(text(sides.there, i));
    if (found == known.end()) return {};
    out.push_back(sides.is(i, i) ? static_cast<std::int64_t>(i) : found->second);
  }
  return out;
}

// The first piece that stands elsewhere; nothing where none does.
std::optional<std::size_t> first_moved(const RowOrder& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<std::int64_t>(i)) return i;
  }
  return std::nullopt;
}

// --- cells: layers and experts

// Cells are one further along `dim`; what stands at the end is not looked at.
bool is_shifted(const TwoSides& cells, const Extents& dims, std::size_t dim, std::int64_t shift) {
  const Extents strides = row_major_strides(dims);
  bool moves = false;
  for (std::size_t i = 0; i < cells.count(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / strides[dim] % dims[dim];
    if (at + shift < 0 || at + shift >= dims[dim]) continue;
    if (!cells.is(i, static_cast<std::size_t>(static_cast<std::int64_t>(i) + shift * strides[dim])))
      return false;
    moves = moves || !cells.is(i, i);
  }
  return moves;
}

std::string counter_at(const RowLayout& layout, std::size_t dim) {
  return dim < layout.counters.size() ? layout.counters[dim] : "cell";
}

std::optional<std::string> wrong_cells(const TwoSides& cells, const Extents& dims,
                                       const RowLayout& layout) {
  for (std::size_t dim = dims.size(); dim-- > 0;) {
    for (const std::int64_t shift : {std::int64_t{1}, std::int64_t{-1}}) {
      if (is_shifted(cells, dims, dim, shift))
        return fmt::format("every {} holds what belongs to the {} one: {}s are off by one",
                           counter_at(layout, dim), shift > 0 ? "next" : "previous",
                           counter_at(layout, dim));
    }
  }
  const RowOrder order = found_order(cells);
  const auto moved = first_moved(order);
  if (!moved) return std::nullopt;
  const Extents strides = row_major_strides(dims);
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    const std::int64_t is = static_cast<std::int64_t>(*moved) / strides[dim] % dims[dim];
    const std::int64_t was = order[*moved] / strides[dim] % dims[dim];
    if (is != was)
      return fmt::format("{0}s are stacked in another order: {0} {1} holds what belongs to {0} {2}",
                         counter_at(layout, dim), is, was);
  }
  return std::nullopt;
}

// --- rows of one cell

std::optional<std::string> known_rows(const TwoSides& rows, const RowLayout& layout) {
  for (const KnownOrder& known : known_orders(layout)) {
    if (fits(rows, known.from)) return known.text;
  }
  return std::nullopt;
}

std::optional<std::string> moved_rows(const TwoSides& rows) {
  // Single elements are found anywhere.
  if (rows.length < kShortestFound) return std::nullopt;
  const RowOrder order = found_order(rows);
  const auto moved = first_moved(order);
  if (!moved) return std::nullopt;
  std::size_t count = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    count += order[i] != static_cast<std::int64_t>(i) ? 1U : 0U;
  return fmt::format("{} of {} rows stand elsewhere, beginning with row {}, which holds row {}",
                     count, order.size(), *moved, order[*moved]);
}

// A matrix with its rows as columns.
Bytes turned_matrix(BytesView from, std::size_t rows, std::size_t columns, std::size_t width) {
  Bytes out(from.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(out.data() + (c * rows + r) * width, from.data() + (r * columns + c) * width,
                  width);
  }
  return out;
}

struct MatrixSize {
  std::size_t rows = 0, columns = 0, width = 0;
};

std::optional<std::string> wrong_columns(BytesView there, BytesView expected,
                                         const MatrixSize& size) {
  const Bytes is = turned_matrix(there, size.rows, size.columns, size.width);
  const Bytes was = turned_matrix(expected, size.rows, size.columns, size.width);
  const TwoSides columns{is, was, size.rows * size.width};
  if (size.columns % 2 == 0) {
    RowOrder halves(size.columns);
    std::iota(halves.begin(), halves.end(), 0);
    std::rotate(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(size.columns / 2),
                halves.end());
    if (fits(columns, halves)) return "the two halves of its columns are swapped";
  }
  if (columns.length < kShortestFound) return std::nullopt;
  const RowOrder order = found_order(columns);
  const auto moved = first_moved(order);
  if (!moved) return std::nullopt;
  return fmt::format("its columns stand in another order: column {} holds column {}", *moved,
                     order[*moved]);
}

// The first cell that differs stands for the others: one converter wrote them all.
std::optional<std::size_t> first_differing(const TwoSides& cells) {
  for (std::size_t i = 0; i < cells.count(); ++i) {
    if (!cells.is(i, i)) return i;
  }
  return std::nullopt;
}

// The last two dims are those of a matrix, whatever is stacked before them.
std::optional<std::string> turned_cells(const HeldTensor& there, const HeldTensor& expected) {
  if (expected.shape.size() < 2 || there.shape.size() != expected.shape.size() ||
      there.bytes.size() != expected.bytes.size())
    return std::nullopt;
  const std::size_t lead = expected.shape.size() - 2;
  const MatrixSize size{static_cast<std::size_t>(expected.shape[lead]),
                        static_cast<std::size_t>(expected.shape[lead + 1]),
                        size_of(expected.dtype)};
  const std::size_t cell = size.rows * size.columns * size.width;
  for (std::size_t at = 0; cell > 0 && at < expected.bytes.size(); at += cell) {
    const Bytes turned = turned_matrix(BytesView(expected.bytes).subspan(at, cell), size.rows,
                                       size.columns, size.width);
    if (std::memcmp(turned.data(), there.bytes.data() + at, cell) != 0) return std::nullopt;
  }
  return cell == 0 ? std::nullopt : std::optional<std::string>("it is transposed");
}

std::optional<std::string> other_length(const HeldTensor& there, const HeldTensor& expected) {
  if (there.shape.size() != expected.shape.size() || there.shape.empty() ||
      there.shape.front() == expected.shape.front())
    return std::nullopt;
  const std::size_t both = std::min(there.bytes.size(), expected.bytes.size());
  if (std::memcmp(there.bytes.data(), expected.bytes.data(), both) != 0) return std::nullopt;
  const bool is_cut = there.shape.front() < expected.shape.front();
  return fmt::format(
      "it has {} rows, and {} were expected: the first {} are right, the others "
      "were {}",
      there.shape.front(), expected.shape.front(),
      std::min(there.shape.front(), expected.shape.front()), is_cut ? "cut off" : "added");
}

}  // namespace

namespace {

// One cell, as rows: the first that differs stands for the others, since one converter wrote them.
struct OneCell {
  TwoSides rows;
  MatrixSize size;  // no columns where a row is not one line of elements
};

std::optional<OneCell> first_wrong_cell(const HeldTensor& there, const HeldTensor& expected,
                                        std::size_t row_dim) {
  if (row_dim >= expected.shape.size() || expected.shape[row_dim] == 0) return std::nullopt;
  const auto count =
      static_cast<std::size_t>(volume(ExtentsView(expected.shape).first(row_dim)).value_or(0));
  if (count == 0) return std::nullopt;
  const TwoSides cells{there.bytes, expected.bytes, expected.bytes.size() / count};
  const auto differing = first_differing(cells);
  if (!differing) return std::nullopt;
  const auto rows = static_cast<std::size_t>(expected.shape[row_dim]);
  const std::size_t width = size_of(expected.dtype), at = *differing * cells.length;
  OneCell out;
  out.rows = {cells.there.subspan(at, cells.length), cells.expected.subspan(at, cells.length),
              cells.length / rows};
  if (expected.shape.size() == row_dim + 2 && cells.length <= kMostTurned)
    out.size = {rows, out.rows.length / width, width};
  return out;
}

std::optional<std::string> wrong_stack(const HeldTensor& there, const HeldTensor& expected,
                                       const RowLayout& layout) {
  const Extents lead(expected.shape.begin(),
                     expected.shape.begin() + static_cast<std::ptrdiff_t>(layout.lead));
  const auto count = static_cast<std::size_t>(volume(lead).value_or(0));
  if (count == 0 || lead.empty()) return std::nullopt;
  return wrong_cells({there.bytes, expected.bytes, expected.bytes.size() / count}, lead, layout);
}

}  // namespace

std::optional<std::string> wrong_conversion(const HeldTensor& there, const HeldTensor& expected,
                                            const RowLayout& layout) {
  if (there.dtype != expected.dtype || expected.bytes.empty()) return std::nullopt;
  if (auto text = other_length(there, expected)) return text;
  if (auto text = turned_cells(there, expected)) return text;
  if (there.shape != expected.shape || layout.lead > expected.shape.size()) return std::nullopt;
  if (auto text = wrong_stack(there, expected, layout)) return text;
  const auto cell = first_wrong_cell(there, expected, layout.lead + layout.dim);
  if (cell) {
    if (auto text = known_rows(cell->rows, layout)) return text;
  }
  if (auto text = wrong_values(there, expected)) return text;
  if (!cell) return std::nullopt;
  if (auto text = moved_rows(cell->rows)) return text;
  if (cell->size.columns < 2) return std::nullopt;
  return wrong_columns(cell->rows.there, cell->rows.expected, cell->size);
}

}  // namespace shw
