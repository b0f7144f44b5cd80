// torchao's int4 weights.
#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/facts/values/quant_scaled.h"
#include "core/facts/values/quant_torchao.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

struct Int4Rows {
  TensorId weight{}, scale{}, zero{};
  std::size_t rows = 0, columns = 0, groups = 0;  // of one matrix
  bool has_words = false;                         // 32-bit words with zero points that are codes
};

// The scales [..., groups, rows] of rows [first, first + count) of the first dimension.
Box groups_box(ExtentsView shape, std::int64_t first, std::int64_t count) {
  if (shape.size() != 2) return rows_box(shape, first, count);
  return {{0, first}, {shape[0], count}};
}

QuantFloats int4_rows(const Checkpoint& c, const Int4Rows& from, std::int64_t first,
                      std::int64_t count) {
  const bool is_matrix = c.shape(from.weight).size() == 2;
  const Box box = groups_box(c.shape(from.scale), first, count);
  SHW_TRY(const Bytes codes,
          read_box_bytes(c, from.weight, rows_box(c.shape(from.weight), first, count)));
  SHW_TRY(const std::vector<float> scales, read_box_floats(c, from.scale, box));
  SHW_TRY(const std::vector<float> zeros, read_box_floats(c, from.zero, box));
  const std::size_t rows = is_matrix ? static_cast<std::size_t>(count) : from.rows;
  const std::size_t row_bytes = from.columns / 2, group = from.columns / from.groups;
  std::vector<float> out(codes.size() * 2);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t column = i % from.columns, row = i / from.columns;  // of all matrices read
    const auto both = std::to_integer<unsigned>(codes[row * row_bytes + column / 2]);
    const int code = static_cast<int>(column % 2 == 0 ? both & 0xF : both >> 4);
    const std::size_t cell = (row / rows * from.groups + column / group) * rows + row % rows;
    if (from.has_words)
      out[i] = (static_cast<float>(code) - zeros[cell]) * scales[cell];
    else
      out[i] = static_cast<float>(code < 8 ? code : code - 16) * scales[cell] + zeros[cell];
  }
  return out;
}

// True if the class says that a scale is of as many elements of a row; if no class says it, groups
// are of a power of two.
bool fits_stored_group_size(const QuantSource& from, std::int64_t group) {
  constexpr std::int64_t kMinGroup = 16;
  if (from.of_class != nullptr && from.of_class->block && !from.of_class->block->empty())
    return from.of_class->block->back() == group;
  return group >= kMinGroup && (group & (group - 1)) == 0;
}

struct TiledInt4 {
  TensorId weight{}, scale_and_zero{};
  Int4Tiles tiles;
  std::int64_t rows = 0, columns = 0, groups = 0;  // of one matrix; without the padding
};

// The 8 codes of a word are those of 8 columns of one row: in each half of 16 columns two next to
// each other and the two that are 8 further. The even ones are in the low half of the word.
constexpr std::int64_t kColumnOfCode[8] = {0, 8, 16, 24, 1, 9, 17, 25};

// Rows [first, first + count) of the matrix whose stored words and scales are at the pointers.
// `words` begins with the tile of the first row, and `scales` with that row: of each group they are
// those of `scale_rows` rows.
void decode_tiles(const TiledInt4& from, const std::byte* words, const float* scales,
                  std::int64_t scale_rows, std::int64_t first, std::int64_t count, float* out) {
  const auto padded = from.tiles.elements.back();
  const std::int64_t group = padded / from.groups;
  const std::int64_t tile_columns = from.tiles.words * Int4Tiles::kColumnsOfWord;
  const std::int64_t first_tile = first / Int4Tiles::kRows;
  for (std::int64_t row = first; row < first + count; ++row) {
    for (std::int64_t begin = 0; begin < from.columns; begin += Int4Tiles::kColumnsOfWord) {
      const std::int64_t tile =
          (row / Int4Tiles::kRows - first_tile) * (padded / tile_columns) + begin / tile_columns;
      const std::int64_t word = begin % tile_columns / Int4Tiles::kColumnsOfWord;
      for (std::int64_t lane = 0; lane < 4; ++lane) {
        const std::int64_t thread = row % Int4Tiles::kRows * 4 + lane;
        const std::byte* stored = words + ((tile * 32 + thread) * from.tiles.words + word) * 4;
        for (std::size_t i = 0; i < 8; ++i) {
          const std::int64_t column = begin + lane * 2 + kColumnOfCode[i];
          if (column >= from.columns) continue;
          const auto code = static_cast<float>(unpack_number(stored, i, 4)) - 8.0f;
          const float* factors = scales + (column / group * scale_rows + row - first) * 2;
          const float product = code * factors[0];
          out[(row - first) * from.columns + column] = product + factors[1];
        }
      }
    }
  }
}

QuantFloats tiled_rows(const Checkpoint& c, const TiledInt4& from, std::int64_t first,
                       std::int64_t count) {
  const ExtentsView stored = c.shape(from.weight);
  const bool is_matrix = stored.size() == 4;
  const std::int64_t first_tile = first / Int4Tiles::kRows;
  const std::int64_t tiles =
      count == 0 ? 0 : (first + count - 1) / Int4Tiles::kRows - first_tile + 1;
  SHW_TRY(const Bytes words, read_box_bytes(c, from.weight,
                                            is_matrix ? rows_box(stored, first_tile, tiles)
                                                      : rows_box(stored, first, count)));
  const ExtentsView shape = c.shape(from.scale_and_zero);
  SHW_TRY(const std::vector<float> scales,
          read_box_floats(c, from.scale_and_zero,
                          is_matrix ? Box{{0, first, 0}, {shape[0], count, 2}}
                                    : rows_box(shape, first, count)));
  const std::int64_t rows = is_matrix ? count : from.rows;
  const std::int64_t stored_rows = from.tiles.elements[from.tiles.elements.size() - 2];
  const std::int64_t matrices = is_matrix ? 1 : count;
  std::vector<float> out(static_cast<std::size_t>(matrices * rows * from.columns));
  for (std::int64_t i = 0; i < matrices; ++i) {
    const auto words_of_one = static_cast<std::int64_t>(words.size()) / matrices;
    const auto scales_of_one = static_cast<std::int64_t>(scales.size()) / matrices;
    decode_tiles(from, words.data() + i * words_of_one, scales.data() + i * scales_of_one,
                 is_matrix ? count : stored_rows, is_matrix ? first : 0, rows,
                 out.data() + i * rows * from.columns);
  }
  return out;
}

}  // namespace

Result<DecodedWeight> int4_decoder(const QuantSource& from) {
  const Checkpoint& c = from.c();
  const ExtentsView shape = from.weight();
  const auto scale = from.companion(0), zero = from.companion(1);
  const bool has_words = c.dtype(from.pair.weight) == Dtype::kInt32;
  if (!scale || !zero || shape.size() < 2 || shape.size() > 3 || (has_words && shape.size() != 2))
    return from.unreadable_error(
        "is not a matrix of int4, or several, with scales and zero points");
  const std::size_t at = shape.size() - 2;
  Extents elements = copy_of(shape);
  elements.back() *= has_words ? 8 : 2;
  const ExtentsView scales = c.shape(*scale);
  if (scales.size() != shape.size() || !same(scales.first(at), shape.first(at)) ||
      scales.back() != shape[at] || scales[at] < 1 || elements.back() % scales[at] != 0 ||
      !same(scales, c.shape(*zero)) || !is_plain_float(c.dtype(*scale)) ||
      !fits_stored_group_size(from, elements.back() / scales[at]))
    return from.unfit("has scales or zero points that do not fit it");
  if (from.of_class != nullptr && from.of_class->shape && !same(*from.of_class->shape, elements))
    return from.unfit("has codes for another shape than its class says");
  // int32 weights with int8 zero points are NPU checkpoints: their codes are signed and packed in
  // another order.
  const bool are_codes = c.dtype(*zero) == Dtype::kInt8;
  if (are_codes != has_words || (!are_codes && !is_plain_float(c.dtype(*zero))))
    return from.unreadable_error("has zero points of a form that is not decoded");
  const Int4Rows rows{.weight = from.pair.weight,
                      .scale = *scale,
                      .zero = *zero,
                      .rows = static_cast<std::size_t>(elements[at]),
                      .columns = static_cast<std::size_t>(elements.back()),
                      .groups = static_cast<std::size_t>(scales[at]),
                      .has_words = has_words};
  DecodedWeight decoded = from.result(decoded_name(from), std::move(elements));
  decoded.decode = [checkpoint = from.checkpoint, rows](std::int64_t first, std::int64_t count) {
    return int4_rows(*checkpoint, rows, first, count);
  };
  return decoded;
}

Result<DecodedWeight> int4_tiles_decoder(const QuantSource& from) {
  const Checkpoint& c = from.c();
  const auto tiles = int4_tiles(from.weight());
  const auto both = from.companion(0);
  if (!tiles || !both) return from.unreadable_error("has no scale_and_zero next to it");
  const Extents& padded = tiles->elements;
  const std::size_t at = padded.size() - 2;
  const ExtentsView shape = c.shape(*both);
  if (shape.size() != padded.size() + 1 || !same(shape.first(at), ExtentsView(padded).first(at)) ||
      shape[at] < 1 || padded.back() % shape[at] != 0 || shape[at + 1] != padded[at] ||
      shape[at + 2] != 2 || !is_plain_float(c.dtype(*both)) ||
      !fits_stored_group_size(from, padded.back() / shape[at]))
    return from.unfit("has a scale_and_zero that does not fit its tiles");
  if (from.of_class == nullptr || !from.of_class->shape)
    return from.unreadable_error("is padded to whole tiles, and no file says its shape");
  const Extents& elements = *from.of_class->shape;
  const bool fits = elements.size() == padded.size() &&
                    std::equal(elements.begin(), elements.begin() + at, padded.begin()) &&
                    elements[at] > 0 && elements[at] <= padded[at] && elements.back() > 0 &&
                    elements.back() <= padded.back();
  if (!fits) return from.unfit("has tiles that do not fit the shape of its class");
  const TiledInt4 tiled{.weight = from.pair.weight,
                        .scale_and_zero = *both,
                        .tiles = *tiles,
                        .rows = elements[at],
                        .columns = elements.back(),
                        .groups = shape[at]};
  DecodedWeight decoded = from.result(decoded_name(from), elements);
  decoded.rows_at_once = elements.size() == 2 ? Int4Tiles::kRows : 1;
  decoded.decode = [checkpoint = from.checkpoint, tiled](std::int64_t first, std::int64_t count) {
    return tiled_rows(*checkpoint, tiled, first, count);
  };
  return decoded;
}

}  // namespace shw
