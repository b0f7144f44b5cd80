#include "core/maps/reassembled.h"

#include <algorithm>
#include <cstring>

#include "core/maps/slice_order.h"

namespace shw {
namespace {

constexpr std::size_t kMaxKnownRows = std::size_t{1} << 21;     // limit on rows in the hash table
constexpr std::size_t kShortestRow = 16;                        // bytes
constexpr std::size_t kMaxLineElements = std::size_t{1} << 20;  // limit on tensors with one dim
constexpr std::size_t kMaxLineRuns = 256;                       // limit on runs in such a tensor
constexpr std::size_t kShortestRun = 4;  // elements: shorter runs match by chance

std::size_t row_bytes(const LoadedTensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.back()) * size_of(tensor.dtype);
}

// Offsets of a row, which is numbered over all dims but the last.
Extents offsets_of(std::size_t row, const Extents& shape) {
  Extents out(shape.size(), 0);
  for (std::size_t d = shape.size() - 1; d-- > 0;) {
    out[d] = static_cast<std::int64_t>(row) % shape[d];
    row /= static_cast<std::size_t>(shape[d]);
  }
  return out;
}

// A move of `count` consecutive rows of one matrix.
BoxMove move_of_rows(std::size_t source, const Extents& source_shape, std::size_t from,
                     const Extents& shape, std::size_t at, std::size_t count) {
  BoxMove move{source, offsets_of(from, source_shape), Extents(shape.size(), 1),
               offsets_of(at, shape)};
  move.sizes.back() = shape.back();
  move.sizes[shape.size() - 2] = static_cast<std::int64_t>(count);
  return move;
}

// Adds moves for the order of a matrix's own rows or columns, merged into runs.
void append_row_run_moves(std::size_t own, const LoadedTensor& was, std::size_t first_row,
                          std::size_t dim, const Extents& order, std::vector<BoxMove>& moves) {
  const std::size_t ndim = was.shape.size(), axis = ndim - 2 + dim;
  for (std::size_t i = 0; i < order.size();) {
    std::size_t length = 1;
    while (i + length < order.size() &&
           order[i + length] == order[i] + static_cast<std::int64_t>(length))
      ++length;
    BoxMove move{own, offsets_of(first_row, was.shape), Extents(ndim, 1),
                 offsets_of(first_row, was.shape)};
    move.sizes[ndim - 2] = was.shape[ndim - 2];
    move.sizes[ndim - 1] = was.shape[ndim - 1];
    move.sizes[axis] = static_cast<std::int64_t>(length);
    move.from[axis] = order[i];
    move.at[axis] = static_cast<std::int64_t>(i);
    moves.push_back(std::move(move));
    i += length;
  }
}

// Finds the order of a matrix's own rows, otherwise of its columns.
bool find_own_row_or_column_order(std::size_t own, const LoadedTensor& is, const LoadedTensor& was,
                                  std::size_t first_row, std::size_t rows,
                                  std::vector<BoxMove>& moves) {
  const std::size_t begin = first_row * row_bytes(was), length = rows * row_bytes(was);
  const LoadedTensor matrix{was.dtype, {static_cast<std::int64_t>(rows), was.shape.back()}, {}};
  const BytesView there = BytesView(is.bytes).subspan(begin, length);
  const BytesView expected = BytesView(was.bytes).subspan(begin, length);
  for (const std::size_t dim : {std::size_t{0}, std::size_t{1}}) {
    const Extents order = slice_order(matrix, dim, there, expected);
    if (order.empty()) continue;
    append_row_run_moves(own, was, first_row, dim, order, moves);
    return true;
  }
  return false;
}

// Finds an order of the elements within each row.
bool add_own_elements(std::size_t own, const LoadedTensor& is, const LoadedTensor& was,
                      std::size_t first_row, std::size_t rows, std::vector<BoxMove>& moves) {
  constexpr std::size_t kMaxElements = 1 << 16;
  if (rows * static_cast<std::size_t>(was.shape.back()) > kMaxElements) return false;
  std::vector<BoxMove> runs;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t begin = (first_row + r) * row_bytes(was), before = runs.size();
    const LoadedTensor line{was.dtype, {was.shape.back()}, {}};
    const Extents order = slice_order(line, 0, BytesView(is.bytes).subspan(begin, row_bytes(was)),
                                      BytesView(was.bytes).subspan(begin, row_bytes(was)));
    if (order.empty()) return false;
    append_row_run_moves(own, was, first_row + r, 1, order, runs);
    for (std::size_t i = before; i < runs.size(); ++i) runs[i].sizes[was.shape.size() - 2] = 1;
  }
  moves.insert(moves.end(), runs.begin(), runs.end());
  return true;
}

std::size_t equal_elements(BytesView a, BytesView b, std::size_t width) {
  const std::size_t most = std::min(a.size(), b.size()) / width;
  std::size_t count = 0;
  while (count < most &&
         std::memcmp(a.data() + count * width, b.data() + count * width, width) == 0)
    ++count;
  return count;
}

}  // namespace

bool is_equal_after_move(const BoxMove& move, const LoadedTensor& from, const LoadedTensor& was) {
  const std::size_t ndim = was.shape.size(), width = size_of(was.dtype);
  if (from.shape.size() != ndim || ndim == 0) return false;
  const Extents here = row_major_strides(from.shape), there = row_major_strides(was.shape);
  const auto length = static_cast<std::size_t>(move.sizes.back()) * width;
  Extents at(ndim, 0);
  while (true) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d < ndim; ++d) {
      source += (move.from[d] + at[d]) * here[d];
      target += (move.at[d] + at[d]) * there[d];
    }
    if (std::memcmp(from.bytes.data() + static_cast<std::size_t>(source) * width,
                    was.bytes.data() + static_cast<std::size_t>(target) * width, length) != 0)
      return false;
    std::size_t d = ndim - 1;
    while (d > 0 && ++at[d - 1] == move.sizes[d - 1]) at[--d] = 0;
    if (d == 0) return true;
  }
}

void RowPlaces::add(std::size_t number, const LoadedTensor& tensor) {
  shapes_.resize(number + 1);
  shapes_[number] = tensor.shape;
  if (tensor.shape.size() == 1) {
    line_elements_ += static_cast<std::size_t>(tensor.shape.front());
    if (line_elements_ <= kMaxLineElements) lines_.emplace_back(number, tensor);
    return;
  }
  if (tensor.shape.empty() || row_bytes(tensor) < kShortestRow) return;
  const std::size_t length = row_bytes(tensor), rows = tensor.bytes.size() / length;
  if (rows > kMaxKnownRows - std::min(kMaxKnownRows, rows_.size())) return;
  for (std::size_t r = 0; r < rows; ++r)
    rows_.try_emplace(hash_of(BytesView(tensor.bytes).subspan(r * length, length)),
                      Place{number, r});
}

std::optional<std::vector<BoxMove>> RowPlaces::of_rows(const LoadedTensor& was,
                                                       std::size_t first_row,
                                                       std::size_t count) const {
  std::vector<BoxMove> moves;
  const std::size_t length = row_bytes(was), ndim = was.shape.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = first_row + i;
    const auto found = rows_.find(hash_of(BytesView(was.bytes).subspan(row * length, length)));
    if (found == rows_.end() || shapes_[found->second.tensor].size() != ndim ||
        shapes_[found->second.tensor].back() != was.shape.back())
      return std::nullopt;
    const Place& place = found->second;
    BoxMove move = move_of_rows(place.tensor, shapes_[place.tensor], place.row, was.shape, row, 1);
    if (!moves.empty() && moves.back().source == place.tensor) {
      BoxMove& last = moves.back();
      Extents next = last.from;
      next[ndim - 2] += last.sizes[ndim - 2];
      if (next == move.from) {
        ++last.sizes[ndim - 2];
        continue;
      }
    }
    moves.push_back(std::move(move));
  }
  return moves;
}

// Takes the longest run of elements first, wherever it is.
std::optional<std::vector<BoxMove>> RowPlaces::of_elements(const LoadedTensor& was) const {
  std::vector<BoxMove> moves;
  const std::size_t width = size_of(was.dtype), count = was.bytes.size() / width;
  for (std::size_t at = 0; at < count;) {
    const BytesView wanted = BytesView(was.bytes).subspan(at * width);
    std::size_t best = 0;
    BoxMove move;
    for (const auto& [number, line] : lines_) {
      if (line.dtype != was.dtype) continue;
      for (std::size_t from = 0; from * width < line.bytes.size(); ++from) {
        const std::size_t length =
            equal_elements(wanted, BytesView(line.bytes).subspan(from * width), width);
        if (length <= best) continue;
        best = length;
        move = {number,
                {static_cast<std::int64_t>(from)},
                {static_cast<std::int64_t>(length)},
                {static_cast<std::int64_t>(at)}};
      }
    }
    if (best < std::min(kShortestRun, count) || moves.size() == kMaxLineRuns) return std::nullopt;
    moves.push_back(std::move(move));
    at += best;
  }
  return moves;
}

std::optional<std::vector<BoxMove>> RowPlaces::reassembled(std::size_t own, const LoadedTensor& is,
                                                           const LoadedTensor& was) const {
  const std::size_t ndim = was.shape.size();
  if (ndim == 0 || was.bytes.empty() || is.dtype != was.dtype) return std::nullopt;
  if (ndim == 1) return of_elements(was);
  const auto rows = static_cast<std::size_t>(was.shape[ndim - 2]);
  const std::size_t all = was.bytes.size() / row_bytes(was);
  const bool has_own = is.shape == was.shape;
  std::vector<BoxMove> moves;
  for (std::size_t first = 0; first < all; first += rows) {
    if (has_own && (find_own_row_or_column_order(own, is, was, first, rows, moves) ||
                    add_own_elements(own, is, was, first, rows, moves)))
      continue;
    const auto others = of_rows(was, first, rows);
    if (!others) return std::nullopt;
    moves.insert(moves.end(), others->begin(), others->end());
  }
  return moves;
}

}  // namespace shw
