#include "core/formats/hdf5/hdf5_tile_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <vector>

#include "core/formats/zip/inflating_stream.h"

namespace shw {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
// HDF5's limit for a chunk, 4 GiB.
constexpr std::uint64_t kLargestTile = (std::uint64_t{1} << 32) - 1;

Result<std::unique_ptr<ByteStream>> inflated(const DeflatedTile& tile) {
  return inflating_stream(tile.source, {"the compressed chunk", tile.offset, tile.length,
                                        std::nullopt, DeflateForm::kZlib});
}

tl::unexpected<Error> wrong_tile_size_error(const DeflatedTile& tile, std::uint64_t made) {
  return fail(ErrorKind::kDamaged,
              fmt::format("the compressed chunk expands to {} bytes, which is not its size", made),
              {tile.source->name(), tile.offset});
}

// Skips up to `most` bytes, and returns how many there were.
Result<std::uint64_t> skip(ByteStream& stream, std::uint64_t most) {
  Bytes unread(kReadAtOnce);
  std::uint64_t skipped = 0;
  while (skipped < most) {
    const std::size_t part = std::min<std::uint64_t>(unread.size(), most - skipped);
    SHW_TRY(std::size_t made, stream.read(std::span(unread).first(part)));
    skipped += made;
    if (made < part) break;
  }
  return skipped;
}

// Reads to the end, where the checksum is.
Result<std::uint64_t> length_of(const DeflatedTile& tile) {
  SHW_TRY(auto stream, inflated(tile));
  SHW_TRY(std::uint64_t length, skip(*stream, kLargestTile + 1));
  if (length > kLargestTile) return wrong_tile_size_error(tile, length);
  return length;
}

class PlainTileStream final : public ByteStream {
 public:
  PlainTileStream(const DeflatedTile& tile, std::unique_ptr<ByteStream> stream)
      : tile_(tile), stream_(std::move(stream)), left_(tile.needed) {}

  Result<std::size_t> read(std::span<std::byte> out) override {
    out = out.first(std::min<std::uint64_t>(out.size(), left_));
    SHW_TRY(std::size_t made, stream_->read(out));
    left_ -= made;
    if (made < out.size()) return wrong_tile_size_error(tile_, tile_.needed - left_);
    // The rest is beyond the dataset's end, or empty.
    if (left_ == 0) SHW_CHECK(skip(*stream_, kLargestTile));
    return made;
  }

 private:
  const DeflatedTile tile_;
  const std::unique_ptr<ByteStream> stream_;
  std::uint64_t left_;
};

class ShuffledTileStream final : public ByteStream {
 public:
  explicit ShuffledTileStream(const DeflatedTile& tile) : tile_(tile) {}

  Status begin() {
    std::uint64_t whole = 0;
    if (tile_.whole) {
      whole = *tile_.whole;
    } else {
      SHW_TRY(whole, length_of(tile_));
      if (!tile_.may_have(whole)) return wrong_tile_size_error(tile_, whole);
    }
    if (whole < tile_.needed) return wrong_tile_size_error(tile_, whole);
    count_ = whole / tile_.shuffled_by;
    left_ = tile_.needed / tile_.shuffled_by;
    for (std::size_t plane = 0; plane < tile_.shuffled_by; ++plane) {
      SHW_TRY(auto stream, inflated(tile_));
      SHW_TRY(std::uint64_t before, skip(*stream, plane * count_));
      if (before < plane * count_) return wrong_tile_size_error(tile_, before);
      planes_.push_back(std::move(stream));
    }
    return {};
  }

  Result<std::size_t> read(std::span<std::byte> out) override {
    const std::size_t element = tile_.shuffled_by;
    assert(out.size() % element == 0);
    const std::size_t count = std::min<std::uint64_t>(out.size() / element, left_);
    bytes_.resize(count);
    for (std::size_t plane = 0; plane < element; ++plane) {
      SHW_TRY(std::size_t made, planes_[plane]->read(bytes_));
      if (made < count) return wrong_tile_size_error(tile_, plane * count_ + made);
      for (std::size_t i = 0; i < count; ++i) out[i * element + plane] = bytes_[i];
    }
    left_ -= count;
    if (left_ == 0) SHW_CHECK(check_stream_length());
    return count * element;
  }

 private:
  // A shuffled byte's element depends on the number of elements: a stream of wrong length would
  // silently give wrong numbers.
  Status check_stream_length() {
    const std::uint64_t rest = count_ - tile_.needed / tile_.shuffled_by;
    SHW_TRY(std::uint64_t behind, skip(*planes_.back(), rest + 1));
    if (behind == rest) return {};
    return wrong_tile_size_error(
        tile_, (tile_.shuffled_by - 1) * count_ + tile_.needed / tile_.shuffled_by + behind);
  }

  const DeflatedTile tile_;
  std::vector<std::unique_ptr<ByteStream>> planes_;  // each at the bytes of its significance
  Bytes bytes_;
  std::uint64_t count_ = 0;  // of elements
  std::uint64_t left_ = 0;   // needed elements
};

}  // namespace

Result<std::unique_ptr<ByteStream>> tile_stream(const DeflatedTile& tile) {
  if (tile.shuffled_by > 1) {
    auto stream = std::make_unique<ShuffledTileStream>(tile);
    SHW_CHECK(stream->begin());
    return std::unique_ptr<ByteStream>(std::move(stream));
  }
  SHW_TRY(auto stream, inflated(tile));
  return std::unique_ptr<ByteStream>(std::make_unique<PlainTileStream>(tile, std::move(stream)));
}

}  // namespace shw
