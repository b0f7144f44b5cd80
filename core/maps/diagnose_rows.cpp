// Finds elements at wrong places by trying the known orders on the bytes.
#include "core/maps/diagnose_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "core/base/words.h"
#include "core/facts/values/equal_elements.h"
#include "core/maps/diagnose_stack.h"
#include "core/maps/order_text.h"
#include "core/maps/two_sides.h"

namespace shw {
namespace {

constexpr std::size_t kMaxTurned = std::size_t{64} << 20;  // bytes of a cell
constexpr std::size_t kShortestFound = 16;  // bytes; a shorter row is not distinctive
constexpr std::size_t kMaxTexts = 4;

// True if every saved piece i equals the expected piece from[i]. Padding may have any value.
bool fits(const PieceComparison& sides, const RowOrder& from, std::int64_t padding_from) {
  if (sides.there.size() != sides.expected.size() || from.size() != sides.count()) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool is_padding = padding_from > 0 && from[i] >= padding_from;
    if (!is_padding && !sides.is(i, static_cast<std::size_t>(from[i]))) return false;
  }
  return !from.empty();
}

// Rows that all moved by one number, so that those at one end fell off. `count`: without padding.
std::optional<Mistake> shifted_rows_mistake(const PieceComparison& rows, std::size_t count) {
  if (rows.there.size() != rows.expected.size() || count < 4) return std::nullopt;
  const std::size_t middle = count / 2;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == middle || !rows.is(i, middle)) continue;
    const std::size_t shift = i > middle ? i - middle : middle - i;
    const std::size_t here = i > middle ? shift : 0, of = i > middle ? 0 : shift;
    for (std::size_t row = 0; row + shift < count; ++row) {
      if (!rows.is(here + row, of + row)) return std::nullopt;
    }
    return fmt::format("every row is {} too {}, and what belongs to the {} {} is missing", shift,
                       of == 0 ? "late" : "early", of == 0 ? "last" : "first",
                       shift == 1 ? "row" : fmt::format("{} rows", shift));
  }
  return std::nullopt;
}

std::optional<Mistake> moved_rows_mistake(const PieceComparison& rows, std::int64_t padding_from) {
  // Very short rows would match by chance.
  if (rows.length < kShortestFound) return std::nullopt;
  const RowOrder order = match_pieces(rows);
  if (!order.empty()) return moved_pieces_mistake(order, "row");
  return shifted_rows_mistake(
      rows, padding_from > 0 ? static_cast<std::size_t>(padding_from) : rows.count());
}

// Transposes a matrix.
Bytes transposed_matrix(BytesView from, std::size_t rows, std::size_t columns, std::size_t width) {
  Bytes out(from.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(out.data() + (c * rows + r) * width, from.data() + (r * columns + c) * width,
                  width);
  }
  return out;
}

// One cell as rows.
struct Cell {
  PieceComparison rows;
  Dtype dtype = Dtype::kUnknown;
  std::size_t columns = 0;  // 0 if a row is not one line of elements

  std::size_t width() const { return size_of(dtype); }
  bool is_matrix() const { return columns > 1 && rows.there.size() <= kMaxTurned; }
  LoadedTensor as_loaded_tensor(BytesView bytes) const {
    const auto count = static_cast<std::int64_t>(rows.count());
    const auto row = static_cast<std::int64_t>(rows.length / width());
    return {dtype, {count, row}, Bytes(bytes.begin(), bytes.end())};
  }
};

std::optional<Mistake> wrong_columns_mistake(const Cell& cell) {
  if (!cell.is_matrix()) return std::nullopt;
  const std::size_t rows = cell.rows.count();
  const Bytes is = transposed_matrix(cell.rows.there, rows, cell.columns, cell.width());
  const Bytes was = transposed_matrix(cell.rows.expected, rows, cell.columns, cell.width());
  const PieceComparison columns{is, was, rows * cell.width()};
  if (cell.columns % 2 == 0) {
    RowOrder halves(cell.columns);
    std::iota(halves.begin(), halves.end(), 0);
    std::rotate(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(cell.columns / 2),
                halves.end());
    if (fits(columns, halves, 0)) return Mistake{"the two halves of its columns are swapped"};
  }
  if (columns.length < kShortestFound) return std::nullopt;
  const RowOrder order = match_pieces(columns);
  if (order.empty()) return std::nullopt;
  auto moved = moved_pieces_mistake(order, "column");
  if (moved) moved->kind = Mistake::Kind::kOrder;
  return moved;
}

std::optional<std::string> transposed_cell_text(const Cell& cell) {
  if (!cell.is_matrix()) return std::nullopt;
  const auto rows = static_cast<std::int64_t>(cell.rows.count());
  const auto columns = static_cast<std::int64_t>(cell.columns);
  if (!is_transpose(cell.rows.there, cell.rows.expected, rows, columns, cell.width()))
    return std::nullopt;
  return "it is transposed";
}

std::optional<std::string> length_mismatch_text(const LoadedTensor& there,
                                                const LoadedTensor& expected,
                                                const RowLayout& layout) {
  if (there.shape.size() != expected.shape.size() || there.shape.empty() ||
      there.shape.front() == expected.shape.front())
    return std::nullopt;
  const std::int64_t is = there.shape.front(), was = expected.shape.front();
  const std::int64_t needed = layout.padding_from > 0 ? layout.padding_from : was;
  const std::size_t row =
      expected.bytes.size() / static_cast<std::size_t>(std::max<std::int64_t>(was, 1));
  const std::size_t both = std::min(there.bytes.size(), expected.bytes.size());
  if (std::memcmp(there.bytes.data(), expected.bytes.data(),
                  std::min(both, static_cast<std::size_t>(needed) * row)) != 0)
    return std::nullopt;
  if (is < needed)
    return fmt::format(
        "it has {} rows, and {} were expected: the first {} are right, the others "
        "were cut off",
        is, needed, is);
  return fmt::format(
      "it has {} rows, and {} were expected: the first {} are right, the others "
      "were added, as padding of the vocabulary is",
      is, was, std::min(is, was));
}

// Heads of joined groups, each of `each` query heads, a key and a value: the key and the value
// are after each query head, or as often as that in the groups as they are.
RowOrder order_of_kv_after_each_head(std::int64_t groups, std::int64_t each) {
  RowOrder out;
  for (std::int64_t head = 0; head < groups * each; ++head) {
    const std::int64_t first = head / each * (each + 2);
    out.insert(out.end(), {first + head % each, first + each, first + each + 1});
  }
  return out;
}
RowOrder order_of_kv_per_group(std::int64_t groups, std::int64_t each) {
  RowOrder out;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < 3 * each; ++i)
      out.push_back(group * (each + 2) + (i < each ? i : each + i / each - 1));
  }
  return out;
}

// Keys and values of a group stand once for each of its query heads, as in models without groups.
std::optional<std::string> repeated_heads_text(const LoadedTensor& there,
                                               const LoadedTensor& expected,
                                               const RowLayout& layout) {
  const std::size_t lead = layout.lead, ndim = expected.shape.size();
  if (layout.parts.size() != 3 || layout.part_names.size() != 3 || layout.dim != 0 ||
      layout.head_dim <= 0 || layout.pieces <= 0 || lead >= ndim || there.shape.size() != ndim ||
      layout.parts[1] != layout.parts[2] || layout.parts[1] != layout.pieces * layout.head_dim ||
      layout.parts[0] % layout.parts[1] != 0)
    return std::nullopt;
  const std::int64_t each = layout.parts[0] / layout.parts[1], head = layout.head_dim;
  Extents shape = expected.shape;
  shape[lead] = 3 * layout.parts[0];
  if (each < 2 || there.shape != shape || expected.shape[lead] != (each + 2) * layout.parts[1])
    return std::nullopt;
  const auto rows = static_cast<std::size_t>(expected.shape[lead]);
  const auto cells = static_cast<std::size_t>(volume(ExtentsView(shape).first(lead)).value_or(0));
  if (cells == 0 || rows == 0) return std::nullopt;
  const std::size_t block = expected.bytes.size() / cells / rows * static_cast<std::size_t>(head);
  const auto is_made_by = [&](const RowOrder& blocks) {
    const std::size_t count = blocks.size();
    for (std::size_t i = 0; i < cells * count; ++i) {
      const std::size_t from = expected.bytes.size() / cells * (i / count) +
                               static_cast<std::size_t>(blocks[i % count]) * block;
      if (std::memcmp(there.bytes.data() + i * block, expected.bytes.data() + from, block) != 0)
        return false;
    }
    return true;
  };
  if (!is_made_by(order_of_kv_after_each_head(layout.pieces, each)) &&
      !is_made_by(order_of_kv_per_group(layout.pieces, each)))
    return std::nullopt;
  return fmt::format(
      "the heads of {} and {} are repeated {} times, once for each head of {}: {} groups were "
      "expected",
      layout.part_names[1], layout.part_names[2], each, layout.part_names[0], layout.pieces);
}

// Finds the mistake in one cell whose rows were joined as in `layout`.
class WrongCell {
 public:
  WrongCell(const RowLayout& layout, bool looks_into_parts = true)
      : layout_(layout), orders_(known_orders(layout)), searches_within_parts_(looks_into_parts) {}

  std::optional<Mistake> find_mistake_in_cell(const Cell& cell) const {
    for (const KnownOrder& known : orders_) {
      if (fits(cell.rows, known.from, layout_.padding_from)) return known.mistake;
    }
    if (auto text = diagnose_values(cell.as_loaded_tensor(cell.rows.there),
                                    cell.as_loaded_tensor(cell.rows.expected)))
      return text;
    if (searches_within_parts_ && layout_.parts.size() > 1) {
      if (auto mistake = find_mistake_in_parts(cell)) return mistake;
    }
    if (auto text = transposed_cell_text(cell)) return text;
    if (auto mistake = moved_rows_mistake(cell.rows, layout_.padding_from)) return mistake;
    return wrong_columns_mistake(cell);
  }

 private:
  // Tries each part by itself in the other program's order.
  std::optional<Mistake> find_mistake_in_parts(const Cell& cell) const {
    const std::vector<std::size_t> part_of = parts_of_rows(layout_);
    if (part_of.size() != cell.rows.count()) return std::nullopt;
    std::vector<Bytes> there(layout_.parts.size()), expected(layout_.parts.size());
    append_rows_by_part(cell.rows.there, part_of, there);
    append_rows_by_part(cell.rows.expected, part_of, expected);
    std::map<std::string, std::vector<std::string>> texts;
    Mistake out{""};
    for (std::size_t k = 0; k < there.size(); ++k) {
      if (there[k] == expected[k]) continue;
      auto mistake = mistake_in_part(k, there, expected, cell);
      if (!mistake) return std::nullopt;
      texts[mistake->text].push_back(layout_.part_names[k]);
      out.kind = std::max(out.kind, mistake->kind);
    }
    out.text = texts_with_names(texts);
    return out.text.empty() ? std::nullopt : std::optional(out);
  }

  std::optional<Mistake> mistake_in_part(std::size_t k, const std::vector<Bytes>& there,
                                         const std::vector<Bytes>& expected,
                                         const Cell& cell) const {
    for (std::size_t other = 0; other < expected.size(); ++other) {
      if (other != k && there[k] == expected[other] && there[other] == expected[other])
        return fmt::format("it is a copy of {}, and the right data is missing",
                           layout_.part_names[other]);
    }
    RowLayout part{.part_names = {layout_.part_names[k]}, .parts = {layout_.parts[k]}};
    // The values part has no rotary positions.
    const bool turns = layout_.parts.size() == 3 && k < 2;
    if (turns) part.head_dim = layout_.head_dim;
    Cell alone = cell;
    alone.rows.there = there[k];
    alone.rows.expected = expected[k];
    return WrongCell(part, false).find_mistake_in_cell(alone);
  }

  const RowLayout& layout_;
  std::vector<KnownOrder> orders_;
  bool searches_within_parts_;
};

// Lists the mistakes with the cells that have them.
std::optional<Mistake> wrong_cells_mistake(const LoadedTensor& there, const LoadedTensor& expected,
                                           const RowLayout& layout) {
  const std::size_t row_dim = layout.lead + layout.dim;
  if (row_dim >= expected.shape.size() || expected.shape[row_dim] == 0) return std::nullopt;
  const ExtentsView shape(expected.shape);
  const auto count = static_cast<std::size_t>(volume(shape.first(row_dim)).value_or(0));
  if (count == 0) return std::nullopt;
  const PieceComparison cells{there.bytes, expected.bytes, expected.bytes.size() / count};
  const Extents lead(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(layout.lead));
  const auto stacked = static_cast<std::size_t>(volume(lead).value_or(1));
  const WrongCell wrong(layout);
  Mistake out{""};
  std::map<std::string, std::vector<std::size_t>> texts;  // mistake and its cells of the stack
  std::size_t known = 0, unknown = 0;                     // number of cells
  for (std::size_t i = 0; i < count; ++i) {
    if (cells.is(i, i)) continue;
    const std::size_t at = i * cells.length;
    Cell cell{{cells.there.subspan(at, cells.length), cells.expected.subspan(at, cells.length),
               cells.length / static_cast<std::size_t>(expected.shape[row_dim])},
              expected.dtype};
    if (expected.shape.size() == row_dim + 2)
      cell.columns = cell.rows.length / size_of(expected.dtype);
    const auto mistake = wrong.find_mistake_in_cell(cell);
    ++(mistake ? known : unknown);
    if (mistake) out.kind = std::max(out.kind, mistake->kind);
    auto& where =
        texts[mistake ? mistake->text : "elements differ, and no known mistake explains it"];
    if (where.empty() || where.back() != i / (count / stacked))
      where.push_back(i / (count / stacked));
  }
  // In weights of another step some cells are all ones or zeros by chance.
  if (known <= unknown) return std::nullopt;
  std::size_t shown = 0;
  for (const auto& [text, where] : texts) {
    if (++shown > kMaxTexts) break;
    const std::string place = stack_position_text(where, lead, layout);
    out.text +=
        fmt::format("{}{}{}{}", shown == 1 ? "" : "; ", place, place.empty() ? "" : ": ", text);
  }
  if (texts.size() > kMaxTexts) out.text += fmt::format("; and {} more", texts.size() - kMaxTexts);
  return out;
}

}  // namespace

bool are_transposed_cells(const LoadedTensor& there, const LoadedTensor& expected) {
  const std::size_t ndim = expected.shape.size(), width = size_of(expected.dtype);
  if (ndim < 2 || there.shape.size() != ndim || there.bytes.size() != expected.bytes.size())
    return false;
  const std::int64_t rows = expected.shape[ndim - 2], columns = expected.shape[ndim - 1];
  const std::size_t cell = static_cast<std::size_t>(rows * columns) * width;
  for (std::size_t at = 0; cell > 0 && at < expected.bytes.size(); at += cell) {
    if (!is_transpose(BytesView(there.bytes).subspan(at, cell),
                      BytesView(expected.bytes).subspan(at, cell), rows, columns, width))
      return false;
  }
  return cell > 0;
}

std::optional<Mistake> diagnose_conversion(const LoadedTensor& there, const LoadedTensor& expected,
                                           const RowLayout& layout) {
  if (there.dtype != expected.dtype || expected.bytes.empty() || size_of(expected.dtype) == 0)
    return std::nullopt;
  if (auto text = length_mismatch_text(there, expected, layout)) return text;
  if (auto text = repeated_heads_text(there, expected, layout)) return text;
  if (are_transposed_cells(there, expected)) return Mistake{"it is transposed"};
  if (there.shape != expected.shape || layout.lead > expected.shape.size()) return std::nullopt;
  if (auto text = diagnose_stack_order(there, expected, layout)) return text;
  if (auto text = diagnose_stack_of_parts(there, expected, layout)) return text;
  return wrong_cells_mistake(there, expected, layout);
}

}  // namespace shw
