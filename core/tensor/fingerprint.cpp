#include "core/tensor/fingerprint.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cstring>

#include "core/base/hash.h"
#include "core/tensor/cpu_clones.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::size_t kBlock = kFingerprintBlock;

using WordWeights = std::array<std::uint32_t, kBlock>;

constexpr WordWeights word_weights(int sum) {
  WordWeights weights{};
  for (std::uint32_t i = 0; i < kBlock; ++i) weights[i] = word_weight(sum, i);
  return weights;
}

alignas(64) constexpr WordWeights kWordWeights[2] = {word_weights(0), word_weights(1)};

// Swapping two words of a block must change both sums.
constexpr bool are_distinct(const WordWeights& weights) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (weights[i] >> 26 != 0 || weights[i] % 2 == 0) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (weights[i] == weights[j]) return false;
    }
  }
  return true;
}
static_assert(are_distinct(kWordWeights[0]) && are_distinct(kWordWeights[1]));

struct BlockSums {
  std::uint64_t a = 0, b = 0;
};

// Sums of one whole block; the compiler vectorises over words.
template <class Word>
[[gnu::always_inline]] inline BlockSums block_sums(const std::byte* words) {
  BlockSums sums;
  for (std::size_t i = 0; i < kBlock; ++i) {
    Word word;
    std::memcpy(&word, words + i * sizeof(Word), sizeof(Word));
    sums.a += std::uint64_t{kWordWeights[0][i]} * word;
    sums.b += std::uint64_t{kWordWeights[1][i]} * word;
  }
  return sums;
}

// Accumulates add_block over several blocks and reduces modulo p once, which saves a fifth of the
// time. A product of weight and sum is below 2^125, the folded value below 2^68.
class BlockAccumulator {
 public:
  static constexpr std::uint64_t kUnfolded = 4;
  void add(std::uint64_t weight, std::uint64_t sum) { total_ += Wide{weight} * sum; }
  void fold() { total_ = (total_ & kFingerprintPrime) + (total_ >> 61); }
  std::uint64_t reduced() {
    fold();
    fold();
    return fingerprint_reduced(static_cast<std::uint64_t>(total_));
  }

 private:
  __extension__ using Wide = unsigned __int128;
  Wide total_ = 0;
};

template <class Word>
[[gnu::always_inline]] inline Fingerprint blocks(const std::byte* words, std::uint64_t first,
                                                 std::uint64_t count) {
  BlockAccumulator a, b;
  for (std::uint64_t block = 0; block < count; ++block) {
    BlockSums sums = block_sums<Word>(words + block * kBlock * sizeof(Word));
    a.add(block_weight(0, first + block), sums.a);
    b.add(block_weight(1, first + block), sums.b);
    if (block % BlockAccumulator::kUnfolded == 0) {
      a.fold();
      b.fold();
    }
  }
  return {a.reduced(), b.reduced()};
}

SHW_CPU_CLONES Fingerprint blocks_of_1(const std::byte* words, std::uint64_t first,
                                       std::uint64_t count) {
  return blocks<std::uint8_t>(words, first, count);
}
SHW_CPU_CLONES Fingerprint blocks_of_2(const std::byte* words, std::uint64_t first,
                                       std::uint64_t count) {
  return blocks<std::uint16_t>(words, first, count);
}
SHW_CPU_CLONES Fingerprint blocks_of_4(const std::byte* words, std::uint64_t first,
                                       std::uint64_t count) {
  return blocks<std::uint32_t>(words, first, count);
}

Fingerprint blocks_of(std::size_t word_size, const std::byte* words, std::uint64_t first,
                      std::uint64_t count) {
  switch (word_size) {
    case 1:
      return blocks_of_1(words, first, count);
    case 2:
      return blocks_of_2(words, first, count);
    default:
      return blocks_of_4(words, first, count);
  }
}

// Adds words [first, first + count), all of one block.
template <class Word>
void add_part(Fingerprint& to, const std::byte* words, std::uint64_t first, std::uint64_t count) {
  BlockSums sums;
  for (std::uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, words + i * sizeof(Word), sizeof(Word));
    std::size_t at = (first + i) % kBlock;
    sums.a += std::uint64_t{kWordWeights[0][at]} * word;
    sums.b += std::uint64_t{kWordWeights[1][at]} * word;
  }
  add_block(to, first / kBlock, sums.a, sums.b);
}

void add_part(Fingerprint& to, const std::byte* words, std::size_t word_size, std::uint64_t first,
              std::uint64_t count) {
  if (count == 0) return;
  switch (word_size) {
    case 1:
      return add_part<std::uint8_t>(to, words, first, count);
    case 2:
      return add_part<std::uint16_t>(to, words, first, count);
    default:
      return add_part<std::uint32_t>(to, words, first, count);
  }
}

// Gathers elements that are consecutive in the tensor but strided in memory into a buffer.
class RowGatherer {
 public:
  RowGatherer(Fingerprint& to, std::size_t size) : to_(to), size_(size) {}
  void add(const std::byte* elements, const PairDim& row, std::int64_t index) {
    const std::int64_t most = static_cast<std::int64_t>(room_.size() / size_);
    for (std::int64_t done = 0; done < row.size; done += most) {
      std::int64_t here = std::min(most, row.size - done);
      for (std::int64_t i = 0; i < here; ++i)
        std::memcpy(room_.data() + static_cast<std::size_t>(i) * size_,
                    elements + (done + i) * row.source, size_);
      add_run(to_, room_.data(), size_, static_cast<std::uint64_t>(index + done),
              static_cast<std::uint64_t>(here));
    }
  }

 private:
  Fingerprint& to_;
  std::size_t size_;
  std::array<std::byte, 4096> room_;
};

void add_row(Fingerprint& to, RowGatherer& gathered, const std::byte* elements, const PairDim& row,
             std::int64_t index, std::size_t size) {
  if (row.target == 1 && row.source == static_cast<std::int64_t>(size)) {
    add_run(to, elements, size, static_cast<std::uint64_t>(index),
            static_cast<std::uint64_t>(row.size));
  } else if (row.target == 1) {
    gathered.add(elements, row, index);
  } else {
    for (std::int64_t i = 0; i < row.size; ++i)
      add_run(to, elements + i * row.source, size,
              static_cast<std::uint64_t>(index + i * row.target), 1);
  }
}

}  // namespace

void add_run(Fingerprint& to, const std::byte* elements, std::size_t element_size,
             std::uint64_t first_index, std::uint64_t count) {
  assert(element_size == 1 || element_size == 2 || element_size == 4 || element_size == 8 ||
         element_size == 16);
  const std::uint64_t each = fingerprint_words_per_element(element_size);
  const std::size_t word_size = element_size / each;
  std::uint64_t first = first_index * each, words = count * each;
  if (first % kBlock != 0) {
    std::uint64_t head = std::min(kBlock - first % kBlock, words);
    add_part(to, elements, word_size, first, head);
    elements += head * word_size;
    first += head;
    words -= head;
  }
  const std::uint64_t whole = words / kBlock;
  if (whole != 0) to += blocks_of(word_size, elements, first / kBlock, whole);
  add_part(to, elements + whole * kBlock * word_size, word_size, first + whole * kBlock,
           words % kBlock);
}

namespace {

// The dim along which elements are contiguous in memory if it is not the tensor's last one.
int contiguous_source_dim(const LayoutPair& pair, std::size_t size) {
  const int last = pair.source.ndim - 1;
  if (last < 1 || pair.target.stride[last] != 1 || pair.source.stride[last] == 0) return -1;
  for (int d = 0; d < last; ++d) {
    if (pair.source.stride[d] == static_cast<std::int64_t>(size)) return d;
  }
  return -1;
}

// Column blocks: rows in memory are columns of the tensor, and all columns start at the same
// position in their blocks. Row c holds word first + c of `count` blocks, so the sums of all
// blocks grow row by row without a transpose. The size leaves half of a first-level cache to the
// rows.
constexpr std::size_t kColumns = 1024;
struct ColumnSums {
  std::array<std::uint64_t, kColumns> a{}, b{};
};
template <class Word>
[[gnu::always_inline]] inline void sum_columns(ColumnSums& sums, const std::byte* words,
                                               std::int64_t stride, std::size_t first,
                                               std::size_t rows, std::size_t count) {
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint64_t weight_a = kWordWeights[0][first + r],
                        weight_b = kWordWeights[1][first + r];
    const std::byte* row = words + static_cast<std::int64_t>(r) * stride;
    for (std::size_t i = 0; i < count; ++i) {
      Word word;
      std::memcpy(&word, row + i * sizeof(Word), sizeof(Word));
      sums.a[i] += weight_a * word;
      sums.b[i] += weight_b * word;
    }
  }
}

SHW_CPU_CLONES void columns_of_1(ColumnSums& sums, const std::byte* words, std::int64_t stride,
                                 std::size_t first, std::size_t rows, std::size_t count) {
  sum_columns<std::uint8_t>(sums, words, stride, first, rows, count);
}
SHW_CPU_CLONES void columns_of_2(ColumnSums& sums, const std::byte* words, std::int64_t stride,
                                 std::size_t first, std::size_t rows, std::size_t count) {
  sum_columns<std::uint16_t>(sums, words, stride, first, rows, count);
}
SHW_CPU_CLONES void columns_of_4(ColumnSums& sums, const std::byte* words, std::int64_t stride,
                                 std::size_t first, std::size_t rows, std::size_t count) {
  sum_columns<std::uint32_t>(sums, words, stride, first, rows, count);
}

// `across` is contiguous in memory, `row` in the tensor.
void add_columns(Fingerprint& to, const std::byte* elements, const PairDim& across,
                 const PairDim& row, std::int64_t index, std::size_t size) {
  auto* sum = size == 1 ? columns_of_1 : size == 2 ? columns_of_2 : columns_of_4;
  const auto block = static_cast<std::int64_t>(kBlock);
  const auto most = static_cast<std::int64_t>(kColumns);
  for (std::int64_t c = 0; c < row.size;) {
    const std::int64_t first = (index + c) % block;
    const std::int64_t rows = std::min(block - first, row.size - c);
    for (std::int64_t i = 0; i < across.size; i += most) {
      const std::int64_t count = std::min(most, across.size - i);
      ColumnSums sums;
      sum(sums, elements + i * across.source + c * row.source, row.source,
          static_cast<std::size_t>(first), static_cast<std::size_t>(rows),
          static_cast<std::size_t>(count));
      for (std::int64_t column = 0; column < count; ++column)
        add_block(
            to, static_cast<std::uint64_t>((index + c + (i + column) * across.target) / block),
            sums.a[static_cast<std::size_t>(column)], sums.b[static_cast<std::size_t>(column)]);
    }
    c += rows;
  }
}

// Transposes elements in squares that fit in the cache on both sides; row by row would miss the
// cache at every element.
class CacheBlockedTranspose {
 public:
  CacheBlockedTranspose(Fingerprint& to, const std::byte* elements, std::size_t size)
      : to_(to), elements_(elements), size_(size) {}

  void add(const PairDim& across, const PairDim& row, std::int64_t at, std::int64_t index) {
    for (std::int64_t r = 0; r < across.size; r += kRows) {
      std::int64_t rows = std::min(kRows, across.size - r);
      std::int64_t most = kRowBytes / static_cast<std::int64_t>(size_);
      for (std::int64_t c = 0; c < row.size; c += most) {
        std::int64_t columns = std::min(most, row.size - c);
        turn(across, row, at + r * across.source + c * row.source, rows, columns);
        for (std::int64_t i = 0; i < rows; ++i)
          add_run(to_, room_.data() + i * kRowBytes, size_,
                  static_cast<std::uint64_t>(index + (r + i) * across.target + c),
                  static_cast<std::uint64_t>(columns));
      }
    }
  }

 private:
  static constexpr std::int64_t kRows = 32, kRowBytes = 1024;

  void turn(const PairDim& across, const PairDim& row, std::int64_t at, std::int64_t rows,
            std::int64_t columns) {
    PairDims square;
    square.ndim = 2;
    square.dims[0] = {rows, across.source, kRowBytes};
    square.dims[1] = {columns, row.source, static_cast<std::int64_t>(size_)};
    square.source = at;
    for_each_canonical_pair(square, [&](const LayoutPair& pair) {
      copy_elements(elements_, room_.data(), pair, size_);
    });
  }

  Fingerprint& to_;
  const std::byte* elements_;
  std::size_t size_;
  std::array<std::byte, kRows * kRowBytes> room_;
};

PairDim dim_of_pair(const LayoutPair& pair, int d) {
  return {pair.source.shape[d], pair.source.stride[d], pair.target.stride[d]};
}

}  // namespace

void add_strided(Fingerprint& to, const std::byte* elements, const LayoutPair& pair,
                 std::size_t element_size) {
  const Layout &source = pair.source, &target = pair.target;
  RowGatherer gathered(to, element_size);
  CacheBlockedTranspose turned(to, elements, element_size);
  const int last = source.ndim - 1, across = contiguous_source_dim(pair, element_size);
  std::int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= d == across ? 1 : source.shape[d];
  PairDim row;
  if (last >= 0) row = dim_of_pair(pair, last);
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t at = source.offset, index = target.offset, rest = i;
    for (int d = last; d-- > 0;) {
      if (d == across) continue;
      at += rest % source.shape[d] * source.stride[d];
      index += rest % source.shape[d] * target.stride[d];
      rest /= source.shape[d];
    }
    if (across >= 0 && element_size <= 4 &&
        pair.target.stride[across] % static_cast<std::int64_t>(kBlock) == 0)
      add_columns(to, elements + at, dim_of_pair(pair, across), row, index, element_size);
    else if (across >= 0)
      turned.add(dim_of_pair(pair, across), row, at, index);
    else
      add_row(to, gathered, elements + at, row, index, element_size);
  }
}

std::string to_hex(const Fingerprint& fingerprint) {
  return to_hex(Hash128{fingerprint.a, fingerprint.b});
}

std::optional<Fingerprint> fingerprint_of_hex(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.size() != 2 * kDigits) return std::nullopt;
  Fingerprint out;
  std::from_chars(text.data(), text.data() + kDigits, out.a, 16);
  std::from_chars(text.data() + kDigits, text.data() + 2 * kDigits, out.b, 16);
  // Only canonical text is accepted: parsing and formatting must give the same text.
  bool is_one = out.a < kFingerprintPrime && out.b < kFingerprintPrime && to_hex(out) == text;
  return is_one ? std::optional(out) : std::nullopt;
}

}  // namespace shw
