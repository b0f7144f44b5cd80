#include "core/facts/layout/derived_layout.h"

#include <algorithm>

namespace shw {

CheckInput with_layout(const CheckInput& input, const DerivedLayout& layout) {
  CheckInput derived = input;
  derived.spec = &layout.spec;
  return derived;
}

std::int64_t count_ranks(const CheckInput& input, const std::vector<std::int64_t>& beside) {
  std::int64_t ranks = input.ranks;
  // A rank without data may still have created its file.
  for (const FileRow& file : input.checkpoint.files()) {
    if (file.rank) ranks = std::max<std::int64_t>(ranks, *file.rank + 1);
  }
  for (std::int64_t rank : beside) ranks = std::max(ranks, rank + 1);
  return ranks;
}

}  // namespace shw
