// A full search costs the square of the number of slices, so it is done only if a slice does not
// follow its predecessor: real orders consist of runs. Slices that follow are compared with a
// sample of places, and a sample of slices with all places.
#include "core/facts/reference/slice_likeness.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/facts/reference/likeness.h"
#include "core/facts/reference/match.h"
#include "core/facts/values/value_reader.h"

namespace shw {
namespace {

constexpr std::int64_t kLeastElements = 64, kMaxElements = 256;  // per slice
constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 22;      // per side
constexpr std::int64_t kMaxCompared = std::int64_t{1} << 16;     // slices
constexpr std::size_t kProbes = 8, kSampledPlaces = 32, kSearchedAgain = 512;
// Limit of multiplications in searches: some seconds on one core.
constexpr std::size_t kMaxSearched = std::size_t{1} << 33;

// Elements of a slice that are read at once; nullopt if too few, or if there are too many
// slices.
std::optional<std::int64_t> elements_at_once(ExtentsView shape, std::size_t dim) {
  const std::int64_t slices = shape[dim];
  if (slices < 2 || slices > kMaxCompared) return std::nullopt;
  const std::int64_t all = volume(shape).value_or(0) / slices;
  if (all < kLeastElements) return std::nullopt;
  return std::min({all, kMaxElements, std::max(kLeastElements, kMaxNumbers / slices)});
}

// One standardised row of numbers per slice.
class Slices {
 public:
  Slices(Box window, std::size_t dim) : window_(std::move(window)), dim_(dim) {
    strides_ = window_.sizes;
    strides_[dim] = 1;
    strides_ = row_major_strides(strides_);
    strides_[dim] = 0;
    count_ = static_cast<std::size_t>(window_.sizes[dim]);
    elements_ = static_cast<std::size_t>(volume(window_.sizes).value_or(0)) / count_;
    numbers_.resize(count_ * elements_);
  }
  // False if unreadable or if a slice is constant.
  bool read(const PiecedTensor& tensor) {
    const bool is_read = tensor.pass(window_, [&](const Box& box, BytesView bytes) {
      each_row(
          box, bytes, size_of(tensor.dtype), strides_,
          [&](const Extents& at, std::int64_t, BytesView row) { add_row(tensor.dtype, at, row); });
    });
    if (!is_read) return false;
    for (std::size_t i = 0; i < count_; ++i) {
      if (!standardise_to_unit_length({numbers_.data() + i * elements_, elements_})) return false;
    }
    return true;
  }
  std::size_t size() const { return count_; }
  std::size_t elements() const { return elements_; }
  std::span<const float> operator[](std::size_t i) const {
    return {numbers_.data() + i * elements_, elements_};
  }

 private:
  void add_row(Dtype dtype, Extents at, BytesView row) {
    const std::size_t last = at.size() - 1, count = row.size() / size_of(dtype);
    for (std::size_t d = 0; d <= last; ++d) at[d] -= window_.offsets[d];
    for (std::size_t i = 0; i < count; ++i, ++at[last])
      numbers_[static_cast<std::size_t>(at[dim_]) * elements_ +
               static_cast<std::size_t>(index_at(at, strides_))] =
          static_cast<float>(value_at(dtype, row, i));
  }

  const Box window_;
  const std::size_t dim_;
  Extents strides_;  // of the other dims, inside the window
  std::size_t count_ = 0, elements_ = 0;
  std::vector<float> numbers_;
};

class SliceMatcher {
 public:
  SliceMatcher(const Slices& here, const Slices& there)
      : here_(here), there_(there), asked_(required_margin(here.elements())) {
    for (std::size_t i = 0; i < kSampledPlaces; ++i)
      sampled_places_.push_back(i * there.size() / kSampledPlaces);
  }

  // The place of each slice; nullopt if one has no unique place or all are in place.
  std::optional<Matching> match() {
    if (!sample_has_moved_slices() || !follow() || !found_.is_permuted_matching() || !is_sure())
      return std::nullopt;
    return std::move(found_);
  }

 private:
  double likeness(std::size_t slice, std::size_t place) const {
    return dot_product(here_[slice], there_[place]);
  }

  // The unique best place, from a full search.
  std::optional<std::size_t> searched(std::size_t slice) {
    searched_ += there_.size() * here_.elements();
    if (searched_ > kMaxSearched) return std::nullopt;
    const BestMatch best =
        best_match(there_.size(), [&](std::size_t place) { return likeness(slice, place); });
    if (best.margin < asked_) return std::nullopt;
    found_.margin = std::min(found_.margin, best.margin);
    return best.place;
  }

  // Tests a sample of slices that differ from their own place: each must match another one.
  bool sample_has_moved_slices() {
    std::vector<std::size_t> unlike;
    for (std::size_t i = 0; i < here_.size(); ++i) {
      if (likeness(i, i) < kLikeItsPlace) unlike.push_back(i);
    }
    bool is_elsewhere = false;
    const std::size_t step = std::max<std::size_t>(1, unlike.size() / kProbes);
    for (std::size_t i = 0; i < unlike.size(); i += step) {
      auto place = searched(unlike[i]);
      if (!place) return false;
      is_elsewhere = is_elsewhere || *place != unlike[i];
    }
    return is_elsewhere;
  }

  // Likely places: following the previous slices, or its own.
  std::array<std::size_t, 4> guesses(std::size_t slice) const {
    const std::vector<std::size_t>& known = found_.place_of;
    const std::size_t n = known.size(), one = n > 0 ? known[n - 1] : slice,
                      two = n > 1 ? known[n - 2] : one;
    return {slice, one + 1, two + 1, one + (one - two)};
  }

  std::optional<std::size_t> best_guessed_place(std::size_t slice) const {
    std::optional<std::size_t> best;
    double first = kLikeItsPlace;
    const auto all = guesses(slice);
    for (std::size_t place : all) {
      if (place >= there_.size() || place == best) continue;
      const double alike = likeness(slice, place);
      if (alike < first) continue;
      first = alike;
      best = place;
    }
    auto rivals_it = [&](std::size_t place) {
      return place < there_.size() && place != best && first - likeness(slice, place) < asked_;
    };
    if (!best || first < asked_ || std::any_of(all.begin(), all.end(), rivals_it) ||
        std::any_of(sampled_places_.begin(), sampled_places_.end(), rivals_it))
      return std::nullopt;
    return best;
  }

  bool follow() {
    for (std::size_t i = 0; i < here_.size(); ++i) {
      auto place = best_guessed_place(i);
      if (!place) place = searched(i);
      if (!place) return false;
      found_.place_of.push_back(*place);
    }
    return true;
  }

  bool is_sure() {
    const std::vector<std::size_t>& known = found_.place_of;
    const std::size_t step = std::max<std::size_t>(1, known.size() / kSearchedAgain);
    for (std::size_t i = 0; i < known.size(); i += step) {
      if (searched(i) != known[i]) return false;
    }
    return true;
  }

  const Slices &here_, &there_;
  const double asked_;
  std::vector<std::size_t> sampled_places_;
  std::size_t searched_ = 0;
  Matching found_;  // its margin is that of the searched slices
};

// Compares matched slices also beyond the leading elements.
bool correlate_in_parts(const PiecedTensor& image, const PiecedTensor& truth, std::size_t dim,
                        const std::vector<std::size_t>& places) {
  const std::int64_t elements =
      elements_of_part(volume(image.shape).value_or(0) / image.shape[dim]);
  for (std::size_t which = 0; which < kParts; ++which) {
    const Box part = part_inside(image.shape, elements, which, dim);
    Slices here(part, dim), there(part, dim);
    if (!here.read(image) || !there.read(truth)) return false;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (dot_product(here[i], there[places[i]]) < kMinPartCorrelation) return false;
    }
  }
  return true;
}

// Fast test with a few elements per slice, which decides for most tensors.
bool has_slice_unlike_its_place(const PiecedTensor& image, const PiecedTensor& truth,
                                std::size_t dim) {
  const Box few = part_inside(image.shape, kLeastElements, 0, dim);
  Slices here(few, dim), there(few, dim);
  if (!here.read(image) || !there.read(truth)) return false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (dot_product(here[i], there[i]) < kLikeItsPlace) return true;
  }
  return false;
}

std::optional<BlockOrder> match_slice_order_along(const PiecedTensor& image,
                                                  const PiecedTensor& truth, std::size_t dim) {
  const auto elements = elements_at_once(image.shape, dim);
  if (!elements || !has_slice_unlike_its_place(image, truth, dim)) return std::nullopt;
  const Box first = part_inside(image.shape, *elements, 0, dim);
  Slices here(first, dim), there(first, dim);
  if (!here.read(image) || !there.read(truth)) return std::nullopt;
  auto found = SliceMatcher(here, there).match();
  if (!found || !correlate_in_parts(image, truth, dim, found->place_of)) return std::nullopt;
  BlockOrder order{dim, 1, inverse_of(found->place_of), found->margin};
  merge_consecutive_blocks(order);
  return order;
}

}  // namespace

std::optional<BlockOrder> match_slices_by_correlation(const PiecedTensor& image,
                                                      const PiecedTensor& truth) {
  if (image.dtype != truth.dtype || !has_values(image.dtype) || !same(image.shape, truth.shape))
    return std::nullopt;
  for (std::size_t dim = 0; dim < image.shape.size(); ++dim) {
    if (auto order = match_slice_order_along(image, truth, dim)) return order;
  }
  return std::nullopt;
}

std::uint64_t slice_match_bytes(ExtentsView shape) {
  std::int64_t most = 0;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (auto elements = elements_at_once(shape, dim))
      most = std::max(most, volume(part_inside(shape, *elements, 0, dim).sizes).value_or(0));
  }
  // Memory for both sides, each with the leading and one further part.
  return 4 * sizeof(float) * static_cast<std::uint64_t>(most);
}

}  // namespace shw
