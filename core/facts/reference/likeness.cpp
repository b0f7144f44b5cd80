#include "core/facts/reference/likeness.h"

#include <array>

namespace shw {

bool standardise_to_unit_length(std::span<float> row) {
  double sum = 0, squares = 0;
  for (float value : row) sum += value;
  const double mean = sum / static_cast<double>(std::max<std::size_t>(1, row.size()));
  for (float value : row) squares += (value - mean) * (value - mean);
  if (!std::isfinite(squares) || squares <= 0) return false;
  const double scale = 1 / std::sqrt(squares);
  for (float& value : row) value = static_cast<float>((value - mean) * scale);
  return true;
}

double dot_product(std::span<const float> a, std::span<const float> b) {
  std::array<float, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size()) {
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += a[i + j] * b[i + j];
  }
  double sum = 0;
  for (; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  for (float each : sums) sum += double{each};
  return sum;
}

Box part_inside(ExtentsView sizes, std::int64_t elements, std::size_t which,
                std::size_t whole_dim) {
  Box part = whole(sizes);
  std::int64_t taken = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (d == whole_dim) continue;
    const std::int64_t wanted = (elements + taken - 1) / taken;
    part.sizes[d] = std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(1, sizes[d]), sizes[d]);
    part.offsets[d] = (sizes[d] - part.sizes[d]) / static_cast<std::int64_t>(kParts - 1) *
                          static_cast<std::int64_t>(which) +
                      (sizes[d] - part.sizes[d]) % static_cast<std::int64_t>(kParts - 1) *
                          static_cast<std::int64_t>(which) / static_cast<std::int64_t>(kParts - 1);
    taken *= std::max<std::int64_t>(1, part.sizes[d]);
  }
  return part;
}

bool correlates_in_parts(ExtentsView sizes, const ReadPart& here, const ReadPart& there) {
  const std::int64_t elements = elements_of_part(volume(sizes).value_or(0));
  for (std::size_t which = 0; which < kParts; ++which) {
    const Box inside = part_inside(sizes, elements, which);
    auto own = here(inside), other = there(inside);
    if (!own || !other || own->size() != other->size() || !standardise_to_unit_length(*own) ||
        !standardise_to_unit_length(*other) || dot_product(*own, *other) < kMinPartCorrelation)
      return false;
  }
  return true;
}

}  // namespace shw
