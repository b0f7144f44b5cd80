#include "core/tensor/tile_fingerprint.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/strided_copy.h"

namespace shw {

void add_box(Fingerprint& to, ExtentsView sizes, BytesView elements, std::size_t element_size,
             ExtentsView strides, std::int64_t first) {
  for_each_canonical_pair(
      pair_of(sizes, byte_strides(sizes, element_size), 0, strides, first),
      [&](const LayoutPair& part) { add_strided(to, elements.data(), part, element_size); });
}

TileFingerprint::TileFingerprint(ExtentsView shape, const Box& tile, std::size_t element_size)
    : size_(element_size) {
  left_ = static_cast<std::uint64_t>(volume(tile.sizes).value_or(0));
  Extents strides = row_major_strides(shape);
  std::size_t outer = shape.size();
  while (outer > 0) {
    --outer;
    run_ *= static_cast<std::uint64_t>(tile.sizes[outer]);
    if (tile.sizes[outer] != shape[outer]) break;
  }
  for (std::size_t d = 0; d < shape.size(); ++d)
    first_ += static_cast<std::uint64_t>(tile.offsets[d] * strides[d]);
  auto end = static_cast<std::ptrdiff_t>(outer);
  sizes_.assign(tile.sizes.begin(), tile.sizes.begin() + end);
  strides_.assign(strides.begin(), strides.begin() + end);
  at_.assign(outer, 0);
}

// Advances to the next run.
void TileFingerprint::step() {
  done_ = 0;
  for (std::size_t d = at_.size(); d-- > 0;) {
    auto stride = static_cast<std::uint64_t>(strides_[d]);
    first_ += stride;
    if (++at_[d] < sizes_[d]) return;
    first_ -= stride * static_cast<std::uint64_t>(sizes_[d]);
    at_[d] = 0;
  }
}

void TileFingerprint::add_whole(const std::byte* elements, std::uint64_t count) {
  count = std::min(count, left_);
  left_ -= count;
  while (count > 0) {
    std::uint64_t here = std::min(count, run_ - done_);
    add_run(value_, elements, size_, first_ + done_, here);
    elements += here * size_;
    count -= here;
    done_ += here;
    if (done_ == run_) step();
  }
}

void TileFingerprint::skip(std::uint64_t count) {
  count = std::min(count, left_);
  left_ -= count;
  while (count > 0) {
    std::uint64_t here = std::min(count, run_ - done_);
    count -= here;
    done_ += here;
    if (done_ == run_) step();
  }
}

void TileFingerprint::add(BytesView bytes) {
  if (held_ != 0) {
    std::size_t more = std::min(size_ - held_, bytes.size());
    std::memcpy(begun_.data() + held_, bytes.data(), more);
    held_ += more;
    bytes = bytes.subspan(more);
    if (held_ < size_) return;
    held_ = 0;
    add_whole(begun_.data(), 1);
  }
  std::size_t whole = bytes.size() / size_;
  add_whole(bytes.data(), whole);
  held_ = bytes.size() - whole * size_;
  if (held_ != 0) std::memcpy(begun_.data(), bytes.data() + whole * size_, held_);
}

void TileFingerprint::add_zeros(std::uint64_t bytes) {
  static constexpr std::array<std::byte, 16> kZeros{};
  while (bytes > 0 && held_ != 0) {
    add({kZeros.data(), 1});
    --bytes;
  }
  skip(bytes / size_);
  if (bytes % size_ != 0) add({kZeros.data(), static_cast<std::size_t>(bytes % size_)});
}

}  // namespace shw
