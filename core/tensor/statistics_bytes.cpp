#include "core/tensor/statistics_bytes.h"

namespace shw {

void add(Encoder& packer, const StatisticsSums& sums) {
  for (std::uint64_t number : {sums.elements, sums.nan, sums.infinite, sums.denormal, sums.zero,
                               sums.least, sums.greatest})
    packer.add(number);
  for (const WideInteger& sum : sums.sums) packer.add(sum.words);
  packer.add(sums.squares.words);
  for (const auto& counts : sums.by_power) packer.add(counts);
}

Result<StatisticsSums> decode_sums(Decoder& words, Dtype dtype) {
  StatisticsSums sums(dtype);
  for (std::uint64_t* number : {&sums.elements, &sums.nan, &sums.infinite, &sums.denormal,
                                &sums.zero, &sums.least, &sums.greatest}) {
    SHW_TRY(*number, words.number());
  }
  for (WideInteger& sum : sums.sums) {
    SHW_TRY(sum.words, words.numbers());
  }
  SHW_TRY(sums.squares.words, words.numbers());
  for (auto& counts : sums.by_power) {
    SHW_TRY(counts, words.numbers());
  }
  return sums;
}

}  // namespace shw
