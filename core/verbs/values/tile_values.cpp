#include "core/verbs/values/tile_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "core/base/parallel.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/formats/items/element_pass.h"
#include "core/tensor/statistics.h"
#include "core/tensor/statistics_counter.h"

namespace shw::verbs {
namespace {

// Bytes per batch: about 0.1 s, the unit of cancellation and display.
constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;
// Results are copied after each batch: at most 64 batches for a million tiles.
constexpr std::uint32_t kBatchTiles = 4096, kMaxBatches = 64;
// Fewer elements are added one by one, because scanning a counter's tables takes 0.1 ms.
constexpr std::int64_t kFewElements = 16 << 10;
// Large chunks are split into ranges for all cores.
constexpr std::int64_t kRangeBytes = 8 << 20;

std::uint64_t bytes_of(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  auto elements = static_cast<std::uint64_t>(volume(checkpoint.sizes(chunk)).value_or(0));
  std::uint64_t width = size_of(checkpoint.dtype(tensor));
  return width == 0 || elements > std::numeric_limits<std::uint64_t>::max() / width
             ? 0
             : elements * width;
}

// A range of one chunk's elements.
struct TilePart {
  std::uint32_t tile = 0;
  ElementRange range;
};

double number_in(const std::string& text) {
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} ? value : 0;
}

void set_tile_numbers_from_sums(const StatisticsSums& sums, TileNumbers& tile) {
  tile.elements = sums.elements;
  tile.nan = sums.nan;
  tile.infinite = sums.infinite;
  tile.zero = sums.zero;
  bool ordered = number_kind(sums.dtype) != NumberKind::kOpaque && sums.elements > sums.nan;
  if (!ordered) return;
  auto [least, greatest] = range_text(sums);
  tile.greatest = std::max(std::abs(number_in(least)), std::abs(number_in(greatest)));
}

class TileValueReader {
 public:
  TileValueReader(const Checkpoint& checkpoint, TileValues& values, Progress* progress)
      : checkpoint_(checkpoint),
        values_(values),
        dtype_(checkpoint.dtype(values.tensor)),
        progress_(progress) {}
  Status read_tiles();

 private:
  std::uint32_t end() const;
  void cut(std::uint32_t last);
  Status count_part(const TilePart& part);
  Result<StatisticsSums> sums_of(const TilePart& part);
  ChunkId chunk(std::uint32_t tile) const { return checkpoint_.chunks(values_.tensor)[tile]; }

  const Checkpoint& checkpoint_;
  TileValues& values_;
  Dtype dtype_;
  Progress* progress_;
  std::vector<TilePart> parts_;
  std::mutex guard_;  // guards the two members below
  std::vector<StatisticsSums> sums_;
  std::vector<std::optional<Error>> errors_;
  Pool<StatisticsCounter> counters_{[] { return std::make_unique<StatisticsCounter>(); }};
  Pool<ItemCursor> items_{[this] { return std::make_unique<ItemCursor>(checkpoint_, 0); }};
};

std::uint32_t TileValueReader::end() const {
  auto all = static_cast<std::uint32_t>(values_.tiles.size());
  std::uint32_t most = std::max(kBatchTiles, all / kMaxBatches);
  std::uint64_t bytes = 0;
  std::uint32_t last = values_.done;
  while (last < all && last - values_.done < most && bytes < kBatchBytes)
    bytes += bytes_of(checkpoint_, values_.tensor, chunk(last++));
  return last;
}

void TileValueReader::cut(std::uint32_t last) {
  std::int64_t most = kRangeBytes / std::max<std::int64_t>(size_of(dtype_), 1);
  for (std::uint32_t tile = values_.done; tile < last; ++tile) {
    std::int64_t count = volume(checkpoint_.sizes(chunk(tile))).value_or(0);
    for (std::int64_t first = 0;; first += most) {
      parts_.push_back({tile, {first, std::min(count - first, most) + first}});
      if (count - first <= most) break;
    }
  }
}

Result<StatisticsSums> TileValueReader::sums_of(const TilePart& part) {
  bool few = part.range.last - part.range.first <= kFewElements && size_of(dtype_) <= 8;
  StatisticsSums alike(dtype_);
  auto items = items_.take();
  if (few) {
    StatisticsSums sums(dtype_);
    Bytes bytes;
    ExtentVisitor to;
    to.bytes = [&](BytesView more) -> Status {
      bytes.insert(bytes.end(), more.begin(), more.end());
      return {};
    };
    SHW_TRY([[maybe_unused]] std::int64_t given,
            stream_elements(*items, chunk(part.tile), part.range, to, progress_,
                            constant_run_counter(alike)));
    std::size_t width = size_of(dtype_);
    for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, width);
      add_elements(sums, bits, 1);
    }
    sums += alike;
    return sums;
  }
  auto counter = counters_.take();
  counter->begin(dtype_);
  SHW_TRY([[maybe_unused]] std::int64_t given,
          stream_elements(*items, chunk(part.tile), part.range, counting(*counter), progress_,
                          constant_run_counter(alike)));
  StatisticsSums sums = counter->take();
  sums += alike;
  return sums;
}

Status TileValueReader::count_part(const TilePart& part) {
  if (is_cancelled(progress_)) return cancelled_error();
  auto sums = sums_of(part);
  if (!sums && sums.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(sums).error());
  std::lock_guard lock(guard_);
  std::size_t at = part.tile - values_.done;
  if (sums)
    sums_[at] += *sums;
  else if (!errors_[at])
    errors_[at] = std::move(sums).error();
  return {};
}

Status TileValueReader::read_tiles() {
  std::uint32_t last = end();
  cut(last);
  if (progress_ != nullptr) {
    std::uint64_t bytes = 0;
    for (std::uint32_t tile = values_.done; tile < last; ++tile)
      bytes += bytes_of(checkpoint_, values_.tensor, chunk(tile));
    progress_->begin(Phase::kReadingBytes, bytes, true);
  }
  sums_.assign(last - values_.done, StatisticsSums(dtype_));
  errors_.resize(last - values_.done);
  SHW_CHECK(parallel_for(parts_.size(), [&](std::size_t i) { return count_part(parts_[i]); }));
  for (std::uint32_t tile = values_.done; tile < last; ++tile) {
    auto& error = errors_[tile - values_.done];
    TileNumbers& numbers = values_.tiles[tile];
    numbers.state = error ? TileNumbers::State::kUnread : TileNumbers::State::kLooked;
    if (!error) {
      set_tile_numbers_from_sums(sums_[tile - values_.done], numbers);
      continue;
    }
    ++values_.unread;
    if (!values_.error) values_.error = std::move(error);
  }
  values_.done = last;
  return {};
}

}  // namespace

std::uint64_t tile_value_bytes(const Checkpoint& checkpoint, TensorId tensor) {
  std::uint64_t bytes = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor)) bytes += bytes_of(checkpoint, tensor, chunk);
  return bytes;
}

TileValues unexamined_tiles(const Checkpoint& checkpoint, TensorId tensor) {
  TileValues values;
  values.tensor = tensor;
  auto chunks = checkpoint.chunks(tensor);
  values.tiles.resize(chunks.size());
  values.has_numbers = number_kind(checkpoint.dtype(tensor)) != NumberKind::kOpaque;
  values.bytes = tile_value_bytes(checkpoint, tensor);
  return values;
}

Status read_further_tiles(const Checkpoint& checkpoint, TileValues& values, Progress* progress) {
  if (values.is_complete()) return {};
  return TileValueReader(checkpoint, values, progress).read_tiles();
}

}  // namespace shw::verbs
