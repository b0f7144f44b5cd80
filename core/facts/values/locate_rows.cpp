#include "core/facts/values/locate_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/tensor/cast.h"

namespace shw {
namespace {

using RowHashes = std::vector<std::uint64_t>;
constexpr std::int64_t kTwice = -1;

// A hash per row; different rows collide with probability 2^-64.
RowHashes rows_of(BytesView bytes, ExtentsView shape, std::size_t dim, std::size_t width) {
  std::size_t outer = 1, inner = width;
  for (std::size_t d = 0; d < dim; ++d) outer *= static_cast<std::size_t>(shape[d]);
  for (std::size_t d = dim + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
  auto rows = static_cast<std::size_t>(shape[dim]);
  RowHashes hashes(rows, 0);
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t r = 0; r < rows; ++r) {
      std::string_view row(reinterpret_cast<const char*>(bytes.data()) + (o * rows + r) * inner,
                           inner);
      std::uint64_t hash = std::hash<std::string_view>{}(row);
      hashes[r] ^= hash + std::uint64_t{0x9e3779b97f4a7c15} + (hashes[r] << 6) + (hashes[r] >> 2);
    }
  }
  return hashes;
}

std::unordered_map<std::uint64_t, std::int64_t> index_of_rows(const RowHashes& rows) {
  std::unordered_map<std::uint64_t, std::int64_t> index;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    auto [at, added] = index.try_emplace(rows[r], static_cast<std::int64_t>(r));
    if (!added) at->second = kTwice;
  }
  return index;
}

std::int64_t row_elements(ExtentsView shape, std::size_t dim) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) elements *= d == dim ? 1 : shape[d];
  return elements;
}

// The only axis whose extents differ; the first if all are equal.
std::optional<std::size_t> only_differing_axis(ExtentsView part, ExtentsView whole) {
  if (part.size() != whole.size() || part.empty()) return std::nullopt;
  std::optional<std::size_t> dim;
  for (std::size_t d = 0; d < part.size(); ++d) {
    if (part[d] <= 0 || part[d] > whole[d]) return std::nullopt;
    if (part[d] == whole[d]) continue;
    if (dim) return std::nullopt;
    dim = d;
  }
  return dim.value_or(0);
}

}  // namespace

std::optional<Located> locate_rows(const TensorValues& part, const TensorValues& whole) {
  auto dim = only_differing_axis(part.shape, whole.shape);
  auto cast = dim ? cast_elements(part.dtype, part.bytes, whole.dtype)
                  : Result<std::vector<std::byte>>(std::vector<std::byte>{});
  if (!dim || !cast) return std::nullopt;
  std::size_t width = size_of(whole.dtype);
  RowHashes mine = rows_of(*cast, part.shape, *dim, width);
  RowHashes theirs = rows_of(whole.bytes, whole.shape, *dim, width);
  auto index = index_of_rows(theirs);
  std::map<std::int64_t, std::int64_t> votes;  // by offset: number of unique rows
  for (std::size_t r = 0; r < mine.size(); ++r) {
    auto found = index.find(mine[r]);
    if (found == index.end()) return std::nullopt;
    if (found->second != kTwice) ++votes[found->second - static_cast<std::int64_t>(r)];
  }
  if (votes.size() != 1) return std::nullopt;
  auto [at, informative] = *votes.begin();
  if (at < 0 || static_cast<std::size_t>(at) + mine.size() > theirs.size()) return std::nullopt;
  if (!std::equal(mine.begin(), mine.end(), theirs.begin() + at)) return std::nullopt;
  return Located{*dim, at, static_cast<std::int64_t>(mine.size()),
                 informative * row_elements(part.shape, *dim)};
}

std::vector<RowRun> locate_moved_rows(const TensorValues& part, const TensorValues& whole) {
  std::vector<RowRun> runs;
  if (part.shape.empty() || part.shape != whole.shape) return runs;
  auto cast = cast_elements(part.dtype, part.bytes, whole.dtype);
  if (!cast) return runs;
  RowHashes mine = rows_of(*cast, part.shape, 0, size_of(whole.dtype));
  auto index = index_of_rows(rows_of(whole.bytes, whole.shape, 0, size_of(whole.dtype)));
  for (std::size_t r = 0; r < mine.size(); ++r) {
    auto found = index.find(mine[r]);
    auto row = static_cast<std::int64_t>(r);
    if (found == index.end() || found->second == kTwice || found->second == row) continue;
    if (!runs.empty() && runs.back().first + runs.back().count == row &&
        runs.back().at + runs.back().count == found->second) {
      ++runs.back().count;
    } else {
      runs.push_back({row, 1, found->second});
    }
  }
  return runs;
}

std::string rows_text(std::int64_t at, std::int64_t count) {
  return fmt::format("[{}, {})", at, at + count);
}

}  // namespace shw
