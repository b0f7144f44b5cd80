#include "core/facts/layout/padding.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/facts/reference/tile_content.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

constexpr std::int64_t kRowsBytes = std::int64_t{16} << 20;  // bytes per read
constexpr std::int64_t kMaxOfARow = std::int64_t{1} << 30;   // longer rows are invalid

bool are_zeros(BytesView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Properties shared by all rows read so far.
struct RowSummary {
  bool zeros = true, alike = true;
  Bytes first = {};

  void add_chunk(BytesView rows, std::size_t row) {
    zeros = zeros && are_zeros(rows);
    if (first.empty()) first.assign(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(row));
    for (std::size_t at = 0; alike && at < rows.size(); at += row)
      alike = std::memcmp(rows.data() + at, first.data(), row) == 0;
  }
};

}  // namespace

std::optional<bool> ends_in_padding(const Checkpoint& checkpoint, TensorId tensor,
                                    std::int64_t begin, bool or_identical, Progress* progress) {
  const Dtype dtype = checkpoint.dtype(tensor);
  const Box all = whole(checkpoint.shape(tensor));
  if (checkpoint.directory() == nullptr || size_of(dtype) == 0 || all.sizes.empty() || begin < 0 ||
      begin > all.sizes[0] || compute_tiling(checkpoint, tensor).tiling != Tiling::kExact)
    return std::nullopt;
  const std::int64_t elements = volume(all.sizes).value_or(0), rows = all.sizes[0];
  if (elements == 0 || begin == rows) return true;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  if (elements / rows > kMaxOfARow / element) return std::nullopt;
  const std::int64_t row = elements / rows * element;
  const std::int64_t at_once = std::max<std::int64_t>(1, kRowsBytes / row);
  TensorBoxes boxes(checkpoint, tensor, dtype, progress);
  RowSummary seen;
  seen.alike = or_identical && rows - begin > 1;
  for (std::int64_t at = begin; at < rows && (seen.zeros || seen.alike); at += at_once) {
    Box part = all;
    part.offsets[0] = at;
    part.sizes[0] = std::min(at_once, rows - at);
    auto bytes = boxes.elements(part);
    if (!bytes) return std::nullopt;
    seen.add_chunk(*bytes, static_cast<std::size_t>(row));
  }
  return seen.zeros || seen.alike;
}

bool has_vocabulary_rows(std::string_view role, std::string_view fqn) {
  constexpr std::array<std::string_view, 6> kWords = {"embed", "lm_head", "output_layer",
                                                      "wte",   "vocab",   "tok_"};
  return role.find("vocab") != std::string_view::npos ||
         std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
           return fqn.find(word) != std::string_view::npos;
         });
}

}  // namespace shw
