#include "gpu/statistics_tables.h"

#include "core/tensor/dtype.h"

namespace shw {
namespace {

constexpr std::uint64_t kCodes = 256;

bool has_table(Dtype dtype) {
  return size_of(dtype) > 1 && number_kind(dtype) != NumberKind::kOpaque;
}

void add_counts(StatisticsSums& sums, NumberShape shape, std::size_t side,
                const std::uint64_t* counts) {
  sums.zero += counts[kZeroSlot];
  sums.infinite += counts[infinite_slot(shape)];
  sums.nan += counts[nan_slot(shape)];
  const bool is_float = number_kind(sums.dtype) == NumberKind::kFloat;
  for (std::uint32_t slot = 1; slot < infinite_slot(shape); ++slot) {
    if (counts[slot] == 0) continue;
    auto& powers = sums.by_power[side];
    if (powers.size() < slot) powers.resize(slot);
    powers[slot - 1] += counts[slot];
    if (is_float && slot < shape.width) sums.denormal += counts[slot];
  }
}

}  // namespace

std::uint64_t table_word_count(Dtype dtype) {
  if (size_of(dtype) == 1) return kCodes;
  return has_table(dtype) ? places_of(number_shape(dtype), size_of(dtype)).end : 1;
}

std::uint64_t magnitude_mask(Dtype dtype) {
  switch (dtype) {
    case Dtype::kComplex32:
    case Dtype::kBcomplex32:
      return 0x7FFF7FFF7FFF7FFF;
    case Dtype::kComplex64:
      return 0x7FFFFFFF7FFFFFFF;
    case Dtype::kComplex128:
      return 0x7FFFFFFFFFFFFFFF;
    default:
      return ~std::uint64_t{0};
  }
}

StatisticsSums sums_of_table(Dtype dtype, std::uint64_t elements, const std::uint64_t* words) {
  StatisticsSums sums(dtype);
  if (size_of(dtype) == 1) {
    for (std::uint64_t code = 0; code < kCodes; ++code) {
      if (words[code] != 0) add_elements(sums, code, words[code]);
    }
    return sums;
  }
  sums.elements = elements;
  if (!has_table(dtype)) {
    sums.zero = words[0];
    return sums;
  }
  const NumberShape shape = number_shape(dtype);
  const NumberPlaces places = places_of(shape, size_of(dtype));
  for (std::size_t side = 0; side < 2; ++side)
    add_counts(sums, shape, side, words + places.counts + side * slots_of(shape));
  if (sums.nan != elements) {
    sums.least = ~words[places.least];
    sums.greatest = words[places.greatest];
  }
  const SumWords of = sum_words(size_of(dtype));
  const std::uint64_t* word = words + places.sums;
  for (std::uint32_t group = 0; group < groups_of(shape); ++group) {
    const auto power = static_cast<int>(32 * group);
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::uint32_t i = 0; i < of.magnitude; ++i)
        add(sums.sums[side], *word++, power + static_cast<int>(32 * i));
    }
    for (std::uint32_t i = 0; i < of.square; ++i)
      add(sums.squares, *word++, 2 * power + static_cast<int>(32 * i));
  }
  return sums;
}

}  // namespace shw
