#include "core/facts/reference/block_compare.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/facts/reference/match.h"
#include "core/facts/values/equal_elements.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

using SliceHashes = std::vector<std::uint64_t>;

template <class Word>
std::uint64_t word_at(const std::byte* element) {
  Word word;
  std::memcpy(&word, element, sizeof word);
  return word;
}

// Indices per slice along a dimension: the fewest that give at most `most_slices` equal
// slices.
std::int64_t choose_indices_per_slice(std::int64_t count, std::int64_t most_slices) {
  std::int64_t together = (count + most_slices - 1) / std::max<std::int64_t>(most_slices, 1);
  while (together < count && count % together != 0) ++together;
  return together;
}

// Hashes of the slices along one dimension. Each is a sum over its elements mixed with their
// position in the slice, so they may arrive in any order. If the dimension is not the last, rows
// are contiguous in their slice and the sum is a fingerprint; else a sum of hashes.
class SlicesAlong {
 public:
  SlicesAlong(ExtentsView shape, std::size_t dim, std::int64_t most_slices)
      : dim_(dim), is_last_(dim + 1 == shape.size()) {
    indices_per_slice_ = choose_indices_per_slice(shape[dim], most_slices);
    const auto count = static_cast<std::size_t>(shape[dim] / indices_per_slice_);
    Extents others = copy_of(shape);
    others[dim] = 1;
    strides_ = row_major_strides(others);
    strides_[dim] = 0;
    elements_per_index_ = volume(others).value_or(0);
    if (is_last_)
      hashes_.resize(count);
    else
      sums_.resize(count);
  }
  std::size_t dim() const { return dim_; }
  std::int64_t indices_per_slice() const { return indices_per_slice_; }

  // Adds a row of the tensor that begins at `at`.
  void add(const Extents& at, BytesView row, std::size_t element) {
    if (is_last_) {
      add_hashes(at, row, element);
      return;
    }
    const std::int64_t index = at[dim_], place = index % indices_per_slice_ * elements_per_index_ +
                                                 index_at(at, strides_);
    add_run(sums_[static_cast<std::size_t>(index / indices_per_slice_)], row.data(), element,
            static_cast<std::uint64_t>(place), row.size() / element);
  }

  SliceHashes hashes() const {
    if (is_last_) return hashes_;
    SliceHashes out;
    for (const Fingerprint& sum : sums_) out.push_back(splitmix64(sum.a) ^ sum.b);
    return out;
  }

 private:
  void add_hashes(const Extents& at, BytesView row, std::size_t element) {
    switch (element) {
      case 1:
        return add_words<std::uint8_t>(at, row);
      case 2:
        return add_words<std::uint16_t>(at, row);
      case 4:
        return add_words<std::uint32_t>(at, row);
      default:
        return add_words<std::uint64_t>(at, row, element / 8);
    }
  }

  static std::uint64_t key_of(std::int64_t place) {
    constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
    return splitmix64(static_cast<std::uint64_t>(place) * kGolden + kGolden);
  }

  // Adds words at consecutive positions; an element of several words takes several positions.
  template <class Word>
  void add_words(const Extents& at, BytesView row, std::size_t words = 1) {
    const std::int64_t first = at[dim_], outside = index_at(at, strides_);
    const auto count = static_cast<std::int64_t>(row.size() / (sizeof(Word) * words));
    for (std::size_t part = 0; part < words; ++part) {
      const std::byte* from = row.data() + part * sizeof(Word);
      const auto wide = static_cast<std::int64_t>(words), of = static_cast<std::int64_t>(part);
      if (indices_per_slice_ == 1) {
        const std::uint64_t key = key_of(outside * wide + of);
        std::uint64_t* to = hashes_.data() + first;
        for (std::int64_t i = 0; i < count; ++i)
          to[i] += splitmix64(
              word_at<Word>(from + static_cast<std::size_t>(i) * sizeof(Word) * words) + key);
        continue;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t index = first + i,
                           place = index % indices_per_slice_ * elements_per_index_ + outside;
        hashes_[static_cast<std::size_t>(index / indices_per_slice_)] +=
            splitmix64(word_at<Word>(from + static_cast<std::size_t>(i) * sizeof(Word) * words) +
                       key_of(place * wide + of));
      }
    }
  }

  const std::size_t dim_;
  const bool is_last_;
  std::int64_t indices_per_slice_ = 1;
  Extents strides_;                      // of the other dims
  std::int64_t elements_per_index_ = 0;  // elements per index
  std::vector<Fingerprint> sums_;
  SliceHashes hashes_;
};

// The hashes of one tensor.
struct SlicedTensor {
  std::vector<SlicesAlong> along;
  Fingerprint all;
};

std::optional<SlicedTensor> slice_along_each_dim(const PiecedTensor& tensor,
                                                 std::int64_t most_slices) {
  SlicedTensor out;
  const std::size_t element = size_of(tensor.dtype);
  const Extents strides = row_major_strides(tensor.shape);
  for (std::size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    if (tensor.shape[dim] > 1) out.along.emplace_back(tensor.shape, dim, most_slices);
  }
  const bool is_read = tensor.pass(whole(tensor.shape), [&](const Box& box, BytesView elements) {
    add_box(out.all, box.sizes, elements, element, strides, index_at(box.offsets, strides));
    each_row(box, elements, element, strides, [&](const Extents& at, std::int64_t, BytesView row) {
      for (SlicesAlong& slices : out.along) slices.add(at, row, element);
    });
  });
  return is_read ? std::optional(std::move(out)) : std::nullopt;
}

SliceHashes hash_blocks(const SliceHashes& slices, std::size_t block) {
  SliceHashes hashes;
  for (std::size_t i = 0; i < slices.size(); i += block)
    hashes.push_back(XXH3_64bits(slices.data() + i, block * sizeof(std::uint64_t)));
  return hashes;
}

bool same_multiset(SliceHashes a, SliceHashes b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// For each block of the reference its position in the tensor; nullopt if blocks repeat or one is
// missing.
std::optional<std::vector<std::int64_t>> unique_order(const SliceHashes& image,
                                                      const SliceHashes& truth) {
  PlacesByContent<std::uint64_t, std::uint32_t> places;
  for (std::size_t i = 0; i < image.size(); ++i)
    places.add(image[i], static_cast<std::uint32_t>(i));
  std::vector<std::int64_t> order;
  for (std::uint64_t hash : truth) {
    const auto place = places.only(hash);
    if (!place) return std::nullopt;
    order.push_back(*place);
  }
  return is_permutation_of_indices(order) ? std::optional(std::move(order)) : std::nullopt;
}

// Fingerprint of the tensor with its blocks in the reference's order. Slice hashes only propose.
std::optional<Fingerprint> fingerprint_in(const PiecedTensor& image, const BlockOrder& order) {
  const std::vector<std::int64_t> belongs = inverse_of(order.order);
  const std::size_t element = size_of(image.dtype), dim = order.dim;
  const Extents strides = row_major_strides(image.shape);
  Fingerprint sum;
  auto take = [&](const Box& box, BytesView elements) {
    const Extents inside = byte_strides(box.sizes, element);
    // One block of the box per step.
    for (std::int64_t done = 0; done < box.sizes[dim];) {
      const std::int64_t at = box.offsets[dim] + done, in_block = at % order.block;
      Box part = box;
      part.sizes[dim] = std::min(order.block - in_block, box.sizes[dim] - done);
      part.offsets[dim] =
          belongs[static_cast<std::size_t>(at / order.block)] * order.block + in_block;
      for_each_canonical_pair(
          pair_of(part.sizes, inside, done * inside[dim], strides, index_at(part.offsets, strides)),
          [&](const LayoutPair& pair) { add_strided(sum, elements.data(), pair, element); });
      done += part.sizes[dim];
    }
  };
  return image.pass(whole(image.shape), take) ? std::optional(sum) : std::nullopt;
}

struct TensorWithFingerprint {
  const PiecedTensor& tensor;
  const Fingerprint& all;
};

// nullopt if the tensor cannot be read a second time.
std::optional<BlockComparison> compare_along(const PiecedTensor& image, const SlicesAlong& of_image,
                                             const SlicesAlong& of_truth,
                                             const TensorWithFingerprint& truth) {
  const SliceHashes here = of_image.hashes(), there = of_truth.hashes();
  if (!same_multiset(here, there)) return BlockComparison{BlockAnswer::kDiffers, {}};
  for (std::size_t block = 1; block < here.size(); ++block) {
    if (here.size() % block != 0) continue;
    auto found = unique_order(hash_blocks(here, block), hash_blocks(there, block));
    if (!found) continue;
    BlockOrder order{of_image.dim(),
                     static_cast<std::int64_t>(block) * of_image.indices_per_slice(),
                     std::move(*found)};
    auto moved = fingerprint_in(image, order);
    if (!moved) return std::nullopt;
    if (*moved != truth.all) return BlockComparison{BlockAnswer::kDiffers, {}};
    auto is_proved =
        are_permuted_elements(image, truth.tensor, order.dim, order.block, order.order);
    if (!is_proved) return std::nullopt;
    if (!*is_proved) return BlockComparison{BlockAnswer::kDiffers, {}};
    merge_consecutive_blocks(order);
    return BlockComparison{BlockAnswer::kPermuted, std::move(order)};
  }
  return BlockComparison{BlockAnswer::kAmbiguous, {}};
}

}  // namespace

std::optional<BlockComparison> compare_blocks(const PiecedTensor& image, const PiecedTensor& truth,
                                              std::int64_t most_slices) {
  if (image.dtype != truth.dtype || !same(image.shape, truth.shape))
    return BlockComparison{BlockAnswer::kDiffers, {}};
  auto here = slice_along_each_dim(image, most_slices);
  auto there = here ? slice_along_each_dim(truth, most_slices) : std::nullopt;
  if (!there) return std::nullopt;
  if (here->all == there->all) {
    auto same = are_equal_elements(image, truth);
    if (!same) return std::nullopt;
    return BlockComparison{*same ? BlockAnswer::kSame : BlockAnswer::kDiffers, {}};
  }
  BlockComparison best{BlockAnswer::kDiffers, {}};
  for (std::size_t i = 0; i < here->along.size(); ++i) {
    auto found = compare_along(image, here->along[i], there->along[i], {truth, there->all});
    if (!found || found->answer == BlockAnswer::kPermuted) return found;
    if (found->answer == BlockAnswer::kAmbiguous) best = std::move(*found);
  }
  return best;
}

std::uint64_t bytes_to_compare_blocks(ExtentsView shape) {
  // Bytes of memory per slice: sums, hashes and sorted copies for both tensors, and one entry of a
  // hash table.
  constexpr std::uint64_t kOfASlice = 128;
  std::uint64_t slices = 0;
  for (std::int64_t count : shape)
    slices += static_cast<std::uint64_t>(std::clamp<std::int64_t>(count, 0, kMaxSlices));
  return slices * kOfASlice;
}

}  // namespace shw
