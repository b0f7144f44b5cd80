#include "core/verbs/values/slice_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/checked.h"
#include "core/tensor/cast.h"
#include "core/tensor/element_text.h"
#include "core/tensor/strided_copy.h"

namespace shw::verbs {
namespace {

// Wider slices are sampled in evenly spaced runs.
constexpr std::int64_t kWholeColumns = 64 << 10;
constexpr std::int64_t kMostRuns = 1024;  // reads per slice and chunk

// Elements as doubles; nullopt if the dtype is not numeric.
bool as_doubles(Dtype dtype, BytesView bytes, std::vector<double>& out) {
  std::size_t size = size_of(dtype), count = size == 0 ? 0 : bytes.size() / size;
  out.resize(count);
  auto from = [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * size, sizeof value);
      out[i] = static_cast<double>(value);
    }
    return true;
  };
  switch (dtype) {
    case Dtype::kFloat64:
      return from(double{});
    case Dtype::kInt8:
      return from(std::int8_t{});
    case Dtype::kInt16:
      return from(std::int16_t{});
    case Dtype::kInt32:
      return from(std::int32_t{});
    case Dtype::kInt64:
      return from(std::int64_t{});
    case Dtype::kUint8:
    case Dtype::kBool:
      return from(std::uint8_t{});
    case Dtype::kUint16:
      return from(std::uint16_t{});
    case Dtype::kUint32:
      return from(std::uint32_t{});
    case Dtype::kUint64:
      return from(std::uint64_t{});
    default:
      break;
  }
  if (number_kind(dtype) != NumberKind::kFloat || !can_cast(dtype, Dtype::kFloat64)) return false;
  if (count > 0)
    cast_row(dtype, bytes.data(), static_cast<std::int64_t>(size), Dtype::kFloat64,
             reinterpret_cast<std::byte*>(out.data()), 8, static_cast<std::int64_t>(count));
  return true;
}

}  // namespace

// Evenly spaced runs of a range with about `wanted` positions; the whole range if that is enough.
std::vector<SliceReader::Run> SliceReader::evenly_spaced_runs(std::int64_t extent,
                                                              std::int64_t wanted,
                                                              std::int64_t most_runs) {
  if (wanted >= extent) return {{0, extent}};
  std::int64_t count = std::clamp<std::int64_t>(std::min(wanted, most_runs), 1, extent);
  std::int64_t length = std::max<std::int64_t>(1, wanted / count);
  std::vector<Run> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    // Rounded up, so that run i begins in cell i.
    std::int64_t at = extent / count * i + (extent % count * i + count - 1) / count;
    if (!runs.empty()) at = std::max(at, runs.back().last);
    if (at >= extent) break;
    runs.push_back({at, std::min(extent, at + length)});
  }
  return runs;
}

std::int64_t SliceReader::total(const std::vector<Run>& runs) {
  std::int64_t sum = 0;
  for (const Run& run : runs) sum += run.last - run.first;
  return sum;
}

SliceReader::SliceReader(const Checkpoint& checkpoint, TensorId tensor, SliceValues& out,
                         Progress* progress)
    : checkpoint_(&checkpoint), reader_(checkpoint), out_(out), progress_(progress) {
  element_ = size_of(out.dtype);
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    Box tile = box_of(chunk), window = box_of({0, out_.rows}, {0, out_.columns});
    if (is_valid_box(tile, window.sizes.size()) && intersect(tile, window))
      chunks_.push_back(chunk);
  }
}

SliceReader::SliceReader(SliceReader& a, SliceReader& b, ValuesDifference& out, Progress* progress)
    : a_(&a), b_(&b), difference_(&out), out_(out.values), progress_(progress) {
  out_.dtype = Dtype::kFloat64;
  element_ = size_of(out_.dtype);
}

Box SliceReader::box_of(ChunkId chunk) const {
  return {copy_of(checkpoint_->offsets(chunk)), copy_of(checkpoint_->sizes(chunk))};
}

ValueCell& SliceReader::cell(std::int64_t row, std::int64_t column) {
  auto part = [](std::int64_t at, std::int64_t cells, std::int64_t of) {
    return static_cast<std::int64_t>(static_cast<double>(at) * static_cast<double>(cells) /
                                     static_cast<double>(of));
  };
  std::int64_t r = std::min(part(row, out_.cell_rows, out_.rows), out_.cell_rows - 1);
  std::int64_t c = std::min(part(column, out_.cell_columns, out_.columns), out_.cell_columns - 1);
  return out_.cells[static_cast<std::size_t>(r * out_.cell_columns + c)];
}

// Elements on one side only are excluded from the difference.
Result<SliceReader::Patch> SliceReader::read_difference(const Box& box) {
  SHW_TRY(Patch a, a_->read(box));
  SHW_TRY(Patch b, b_->read(box));
  Patch patch{box, Bytes(a.state.size() * element_),
              std::vector<std::uint8_t>(a.state.size(), kMissing)};
  std::vector<double> from, to;
  Dtype dtype_a = a_->out_.dtype, dtype_b = b_->out_.dtype;
  difference_->has_numbers = as_doubles(dtype_a, a.bytes, from) && as_doubles(dtype_b, b.bytes, to);
  for (std::size_t i = 0; i < patch.state.size(); ++i) {
    patch.state[i] = a.state[i] == kThere ? b.state[i] : a.state[i];
    if (patch.state[i] != kThere) continue;
    bool numbers = difference_->has_numbers;
    bool same = dtype_a == dtype_b
                    ? std::memcmp(a.bytes.data() + i * a_->element_,
                                  b.bytes.data() + i * b_->element_, a_->element_) == 0
                : numbers ? from[i] == to[i] || (std::isnan(from[i]) && std::isnan(to[i]))
                          : false;
    double difference = same || !numbers ? 0 : to[i] - from[i];
    std::memcpy(patch.bytes.data() + i * element_, &difference, sizeof difference);
    if (!difference_->counts) continue;
    difference_->differing += same ? 0 : 1;
    if (std::isfinite(difference))
      difference_->greatest = std::max(difference_->greatest, std::abs(difference));
  }
  for (SliceReader* one : {a_, b_}) {
    if (!out_.error) out_.error = one->out_.error;
  }
  return patch;
}

Box SliceReader::box_of(Run rows, Run columns) const {
  Box box;
  for (std::size_t d = 0; d < out_.ask.dims.size(); ++d) {
    Run run{out_.ask.dims[d].first, out_.ask.dims[d].first + 1};
    if (static_cast<int>(d) == out_.row_dim)
      run = {out_.first_row + rows.first, out_.first_row + rows.last};
    if (static_cast<int>(d) == out_.column_dim)
      run = {out_.first_column + columns.first, out_.first_column + columns.last};
    box.offsets.push_back(run.first);
    box.sizes.push_back(run.last - run.first);
  }
  return box;
}

Result<SliceReader::Patch> SliceReader::read(const Box& box) {
  if (a_ != nullptr) return read_difference(box);
  auto elements = static_cast<std::size_t>(volume(box.sizes).value_or(0));
  Patch patch{box, Bytes(elements * element_), std::vector<std::uint8_t>(elements, kMissing)};
  Extents strides = row_major_strides(box.sizes);
  for (ChunkId chunk : chunks_) {
    Box tile = box_of(chunk);
    auto common = intersect(tile, box);
    if (!common || is_empty(*common)) continue;
    if (is_cancelled(progress_)) return cancelled_error();
    Box inside = *common;
    std::int64_t at = 0;
    for (std::size_t d = 0; d < inside.offsets.size(); ++d) {
      at += (inside.offsets[d] - box.offsets[d]) * strides[d];
      inside.offsets[d] -= tile.offsets[d];
    }
    auto bytes = reader_->read(chunk, inside);
    if (bytes) {
      copy_strided({*bytes, row_major_strides(inside.sizes), 0}, {patch.bytes, strides, at},
                   inside.sizes, element_);
    } else if (!out_.error) {
      out_.error = bytes.error();
    }
    std::uint8_t state = bytes ? kThere : kUnread;
    std::vector<std::uint8_t> states(static_cast<std::size_t>(*volume(inside.sizes)), state);
    copy_strided({std::as_bytes(std::span(states)), row_major_strides(inside.sizes), 0},
                 {std::as_writable_bytes(std::span(patch.state)), strides, at}, inside.sizes, 1);
  }
  return patch;
}

void SliceReader::count(const Patch& patch, Run rows, Run columns) {
  std::size_t elements = patch.state.size();
  for (std::size_t i = 0; i < elements;) {  // runs of existing elements
    std::size_t end = i;
    while (end < elements && patch.state[end] == kThere) ++end;
    counter_.add(BytesView(patch.bytes).subspan(i * element_, (end - i) * element_));
    i = std::max(end, i + 1);
  }
  bool numbers = as_doubles(out_.dtype, patch.bytes, numbers_);
  if (!numbers) out_.cells.clear();
  bool across = out_.row_dim < out_.column_dim;  // rows are contiguous in the patch
  std::int64_t high = rows.last - rows.first, wide = columns.last - columns.first;
  for (std::int64_t r = 0; r < high; ++r) {
    for (std::int64_t c = 0; c < wide; ++c) {
      auto i = static_cast<std::size_t>(across ? r * wide + c : c * high + r);
      std::uint8_t state = patch.state[i];
      out_.missing += state == kMissing;
      out_.unread += state == kUnread;
      if (out_.cells.empty()) continue;
      ValueCell& into = cell(rows.first + r, columns.first + c);
      into.missing |= state == kMissing;
      into.unread |= state == kUnread;
      if (state != kThere) continue;
      auto value = static_cast<float>(numbers_[i]);
      bool finite = std::isfinite(numbers_[i]);
      into.nan |= std::isnan(numbers_[i]);
      into.infinite |= std::isinf(numbers_[i]);
      if (!finite) continue;
      // Values beyond float's range are drawn as the largest float.
      value = std::clamp(value, -3.4e38f, 3.4e38f);
      if (!into.seen || std::abs(value) > std::abs(into.value)) into.value = value;
      into.seen = true;
      out_.greatest = std::max(out_.greatest, std::abs(value));
    }
  }
  out_.looked += high * wide;
}

Status SliceReader::read_statistics() {
  std::int64_t rows = out_.rows, columns = out_.columns;
  std::int64_t wide =
      columns <= kWholeColumns ? columns : std::max(kWholeColumns, kMaxLooked / rows);
  wide = std::min(wide, columns);
  auto bands = evenly_spaced_runs(rows, std::max<std::int64_t>(1, kMaxLooked / wide),
                                  wide == columns ? kMostRuns : 64);
  auto runs =
      evenly_spaced_runs(columns, wide, kMostRuns / static_cast<std::int64_t>(bands.size()) + 1);
  out_.sampled_rows = total(bands);
  out_.sampled_columns = total(runs);
  auto cells = [](std::int64_t extent, std::int64_t most, const std::vector<Run>& of) {
    std::int64_t enough = of.size() == 1 ? extent : static_cast<std::int64_t>(of.size());
    return std::min({extent, most, enough});
  };
  out_.cell_rows = cells(rows, kMaxCellRows, bands);
  out_.cell_columns = cells(columns, kMaxCellColumns, runs);
  out_.cells.resize(static_cast<std::size_t>(out_.cell_rows * out_.cell_columns));
  if (progress_ != nullptr)
    progress_->begin(Phase::kReadingBytes,
                     static_cast<std::uint64_t>(out_.sampled_rows * out_.sampled_columns), false);
  counter_.begin(out_.dtype);
  // Elements per band, the unit of cancellation.
  constexpr std::int64_t kMaxPatch = 1 << 18;
  for (const Run& band : bands) {
    for (const Run& run : runs) {
      std::int64_t step = std::max<std::int64_t>(1, kMaxPatch / (run.last - run.first));
      for (std::int64_t r = band.first; r < band.last; r += step) {
        if (is_cancelled(progress_)) return cancelled_error();
        Run part{r, std::min(band.last, r + step)};
        SHW_TRY(Patch patch, read(box_of(part, run)));
        count(patch, part, run);
        if (progress_ != nullptr) progress_->add(patch.state.size());
      }
    }
  }
  out_.statistics = statistics_of(counter_.take());
  if (difference_ != nullptr && !difference_->has_numbers) out_.cells.clear();
  return {};
}

Status SliceReader::fill_table() {
  out_.table_rows = std::min(out_.rows, kMaxTableRows);
  out_.table_columns = std::min(out_.columns, kMaxTableColumns);
  SHW_TRY(Patch patch, read(box_of({0, out_.table_rows}, {0, out_.table_columns})));
  bool across = out_.row_dim < out_.column_dim;
  for (std::int64_t r = 0; r < out_.table_rows; ++r) {
    for (std::int64_t c = 0; c < out_.table_columns; ++c) {
      auto i =
          static_cast<std::size_t>(across ? r * out_.table_columns + c : c * out_.table_rows + r);
      out_.table.push_back(patch.state[i] == kThere ? element_text(out_.dtype, patch.bytes, i)
                                                    : "");
    }
  }
  return {};
}

Status SliceReader::each_block(std::int64_t most_elements,
                               const std::function<Status(const Block&)>& visit) {
  const std::int64_t wide = std::clamp<std::int64_t>(most_elements, 1, out_.columns);
  const std::int64_t high = std::clamp<std::int64_t>(most_elements / wide, 1, out_.rows);
  const bool across = out_.row_dim < out_.column_dim;
  for (std::int64_t r = 0; r < out_.rows; r += high) {
    const Run rows{r, std::min(out_.rows, r + high)};
    for (std::int64_t c = 0; c < out_.columns; c += wide) {
      if (is_cancelled(progress_)) return cancelled_error();
      const Run columns{c, std::min(out_.columns, c + wide)};
      SHW_TRY(Patch patch, read(box_of(rows, columns)));
      Block block;
      block.rows = rows.last - rows.first;
      block.columns = columns.last - columns.first;
      (across ? block.row_stride : block.column_stride) = across ? block.columns : block.rows;
      block.ends_row = columns.last == out_.columns;
      block.bytes = patch.bytes;
      block.state = patch.state;
      SHW_CHECK(visit(block));
      if (progress_ != nullptr) progress_->add(patch.state.size());
    }
  }
  return {};
}

}  // namespace shw::verbs
