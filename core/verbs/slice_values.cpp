#include "core/verbs/slice_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/box_reader.h"
#include "core/tensor/cast.h"
#include "core/tensor/element_text.h"
#include "core/tensor/statistics_counter.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/slice.h"

namespace shw::verbs {
namespace {

// Columns that are read whole, row by row; of more, evenly spaced runs.
constexpr std::int64_t kWholeColumns = 64 << 10;
constexpr std::int64_t kMostRuns = 1024;  // reads of one look, a chunk each

struct Run {
  std::int64_t first = 0, last = 0;
};

// Evenly spaced runs of a range that hold about `wanted` positions; all of it where that is enough.
std::vector<Run> spaced_runs(std::int64_t extent, std::int64_t wanted, std::int64_t most_runs) {
  if (wanted >= extent) return {{0, extent}};
  std::int64_t count = std::clamp<std::int64_t>(std::min(wanted, most_runs), 1, extent);
  std::int64_t length = std::max<std::int64_t>(1, wanted / count);
  std::vector<Run> runs;
  for (std::int64_t i = 0; i < count; ++i) {
    // Rounded up, so that run i begins in cell i of as many cells.
    std::int64_t at = extent / count * i + (extent % count * i + count - 1) / count;
    if (!runs.empty()) at = std::max(at, runs.back().last);
    if (at >= extent) break;
    runs.push_back({at, std::min(extent, at + length)});
  }
  return runs;
}

std::int64_t total(const std::vector<Run>& runs) {
  std::int64_t sum = 0;
  for (const Run& run : runs) sum += run.last - run.first;
  return sum;
}

// Elements as doubles; nothing where the dtype has no numbers.
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

enum : std::uint8_t { kMissing, kThere, kUnread };

// A box of the tensor, put together from the chunks that cross it.
struct Patch {
  Box box;
  Bytes bytes;
  std::vector<std::uint8_t> state;  // an element each
};

// Not so of a box that was made up: of another rank, or reaching beyond all numbers.
bool can_be(const Box& tile, std::size_t ndim) {
  if (tile.offsets.size() != ndim || tile.sizes.size() != ndim) return false;
  for (std::size_t d = 0; d < ndim; ++d) {
    if (tile.sizes[d] < 0 || !checked_add(tile.offsets[d], tile.sizes[d])) return false;
  }
  return true;
}

class Looker {
 public:
  Looker(const Checkpoint& checkpoint, TensorId tensor, SliceValues& out, Progress* progress)
      : checkpoint_(checkpoint), reader_(checkpoint), out_(out), progress_(progress) {
    element_ = size_of(out.dtype);
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      Box tile = box_of(chunk), window = box_of({0, out_.rows}, {0, out_.columns});
      if (can_be(tile, window.sizes.size()) && intersect(tile, window)) chunks_.push_back(chunk);
    }
  }

  Status look();
  Status fill_table();

 private:
  Box box_of(ChunkId chunk) const {
    return {copy_of(checkpoint_.offsets(chunk)), copy_of(checkpoint_.sizes(chunk))};
  }
  Box box_of(Run rows, Run columns) const;
  Result<Patch> read(const Box& box);
  void count(const Patch& patch, Run rows, Run columns);
  ValueCell& cell(std::int64_t row, std::int64_t column) {
    auto part = [](std::int64_t at, std::int64_t cells, std::int64_t of) {
      return static_cast<std::int64_t>(static_cast<double>(at) * static_cast<double>(cells) /
                                       static_cast<double>(of));
    };
    std::int64_t r = std::min(part(row, out_.cell_rows, out_.rows), out_.cell_rows - 1);
    std::int64_t c = std::min(part(column, out_.cell_columns, out_.columns), out_.cell_columns - 1);
    return out_.cells[static_cast<std::size_t>(r * out_.cell_columns + c)];
  }

  const Checkpoint& checkpoint_;
  BoxReader reader_;
  SliceValues& out_;
  Progress* progress_;
  std::size_t element_ = 0;
  std::vector<ChunkId> chunks_;
  StatisticsCounter counter_;
  std::vector<double> numbers_;
};

Box Looker::box_of(Run rows, Run columns) const {
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

Result<Patch> Looker::read(const Box& box) {
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
    auto bytes = reader_.read(chunk, inside);
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

void Looker::count(const Patch& patch, Run rows, Run columns) {
  std::size_t elements = patch.state.size();
  for (std::size_t i = 0; i < elements;) {  // runs of those that are there
    std::size_t end = i;
    while (end < elements && patch.state[end] == kThere) ++end;
    counter_.add(BytesView(patch.bytes).subspan(i * element_, (end - i) * element_));
    i = std::max(end, i + 1);
  }
  bool numbers = as_doubles(out_.dtype, patch.bytes, numbers_);
  if (!numbers) out_.cells.clear();
  bool across = out_.row_dim < out_.column_dim;  // rows lie one after the other in the patch
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
      // A double beyond float's range is drawn as the largest.
      value = std::clamp(value, -3.4e38f, 3.4e38f);
      if (!into.seen || std::abs(value) > std::abs(into.value)) into.value = value;
      into.seen = true;
      out_.greatest = std::max(out_.greatest, std::abs(value));
    }
  }
  out_.looked += high * wide;
}

Status Looker::look() {
  std::int64_t rows = out_.rows, columns = out_.columns;
  std::int64_t wide =
      columns <= kWholeColumns ? columns : std::max(kWholeColumns, kMostLooked / rows);
  wide = std::min(wide, columns);
  auto bands = spaced_runs(rows, std::max<std::int64_t>(1, kMostLooked / wide),
                           wide == columns ? kMostRuns : 64);
  auto runs = spaced_runs(columns, wide, kMostRuns / static_cast<std::int64_t>(bands.size()) + 1);
  out_.looked_rows = total(bands);
  out_.looked_columns = total(runs);
  auto cells = [](std::int64_t extent, std::int64_t most, const std::vector<Run>& of) {
    std::int64_t enough = of.size() == 1 ? extent : static_cast<std::int64_t>(of.size());
    return std::min({extent, most, enough});
  };
  out_.cell_rows = cells(rows, kMostCellRows, bands);
  out_.cell_columns = cells(columns, kMostCellColumns, runs);
  out_.cells.resize(static_cast<std::size_t>(out_.cell_rows * out_.cell_columns));
  if (progress_ != nullptr)
    progress_->begin(Phase::kReadingBytes,
                     static_cast<std::uint64_t>(out_.looked_rows * out_.looked_columns), false);
  counter_.begin(out_.dtype);
  // A band at a time, so that stopping it takes no longer than one.
  constexpr std::int64_t kMostPatch = 1 << 18;
  for (const Run& band : bands) {
    for (const Run& run : runs) {
      std::int64_t step = std::max<std::int64_t>(1, kMostPatch / (run.last - run.first));
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
  return {};
}

Status Looker::fill_table() {
  out_.table_rows = std::min(out_.rows, kMostTableRows);
  out_.table_columns = std::min(out_.columns, kMostTableColumns);
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

// The window of a tensor that was asked for, as far as the tensor reaches.
Status take_window(const Checkpoint& checkpoint, TensorId tensor, const ValuesAsk& ask,
                   SliceValues& out) {
  ExtentsView shape = checkpoint.shape(tensor);
  auto refuse = [&](std::string why) {
    return fail(ErrorKind::kUsage, std::move(why),
                {"", std::nullopt, std::string(checkpoint.fqn(tensor))});
  };
  out.ask = ask;
  if (ask.dims.empty()) {
    Slice slice = choose_slice(saved_tiling(checkpoint, tensor), nullptr);
    out.ask.transposed = slice.row > slice.column && slice.column >= 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::int64_t at = d < slice.at.size() ? slice.at[d] : 0;
      bool shown = slice.shows(d);
      out.ask.dims.push_back(shown ? DimRange{0, shape[d], true} : DimRange{at, at + 1, false});
    }
  }
  if (out.ask.dims.size() != shape.size())
    return refuse(fmt::format("has {} dimensions, and the slice is of {}", shape.size(),
                              out.ask.dims.size()));
  std::vector<int> shown;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    DimRange& range = out.ask.dims[d];
    if (range.shown) shown.push_back(static_cast<int>(d));
    if (!range.shown) range.last = range.first < shape[d] ? range.first + 1 : range.first;
    range.last = std::min(range.last, shape[d]);
    if (range.first < 0 || range.first >= range.last)
      return refuse(fmt::format("has no element at {} of dimension {}, which is {} long",
                                range.first, d, shape[d]));
  }
  if (shown.size() > 2) return refuse("a slice shows two dimensions at most");
  if (!shown.empty()) out.column_dim = shown.back();
  if (shown.size() == 2) out.row_dim = shown.front();
  if (shown.size() == 2 && out.ask.transposed) std::swap(out.row_dim, out.column_dim);
  auto take = [&](int dim, std::int64_t& first, std::int64_t& count) {
    if (dim < 0) return;
    const DimRange& range = out.ask.dims[static_cast<std::size_t>(dim)];
    first = range.first;
    count = range.last - range.first;
  };
  take(out.row_dim, out.first_row, out.rows);
  take(out.column_dim, out.first_column, out.columns);
  return {};
}

std::optional<std::int64_t> take_integer(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string to_text(const ValuesAsk& ask) {
  std::string text = "[";
  for (const DimRange& range : ask.dims) {
    if (text.size() > 1) text += ", ";
    text +=
        range.shown ? fmt::format("{}:{}", range.first, range.last) : std::to_string(range.first);
  }
  return text + (ask.transposed ? "] transposed" : "]");
}

std::optional<ValuesAsk> parse_values_ask(std::string_view text) {
  ValuesAsk ask;
  constexpr std::string_view kTransposed = " transposed";
  if (text.ends_with(kTransposed)) {
    ask.transposed = true;
    text.remove_suffix(kTransposed.size());
  }
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    auto first = take_integer(text);
    if (!first || ask.dims.size() == kMaxDims) return std::nullopt;
    DimRange range{*first, *first, false};
    if (text.starts_with(':')) {
      text.remove_prefix(1);
      auto last = take_integer(text);
      if (!last) return std::nullopt;
      range = {*first, *last, true};
    } else if (auto next = checked_add(*first, std::int64_t{1})) {
      range.last = *next;
    }
    ask.dims.push_back(range);
    if (text.empty()) break;
    if (!text.starts_with(',')) return std::nullopt;
    text.remove_prefix(1);
  }
  return ask;
}

Result<SliceValues> slice_values(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesAsk& ask, Progress* progress) {
  SliceValues out;
  out.tensor = tensor;
  out.dtype = checkpoint.dtype(tensor);
  if (size_of(out.dtype) == 0)
    return fail(ErrorKind::kUnsupported, "its dtype is not known: there are no values to show",
                {"", std::nullopt, std::string(checkpoint.fqn(tensor))});
  SHW_CHECK(take_window(checkpoint, tensor, ask, out));
  Looker looker(checkpoint, tensor, out, progress);
  SHW_CHECK(looker.look());
  SHW_CHECK(looker.fill_table());
  return out;
}

}  // namespace shw::verbs
