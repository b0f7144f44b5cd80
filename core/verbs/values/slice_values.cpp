#include "core/verbs/values/slice_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/checked.h"
#include "core/tiles/slice.h"
#include "core/verbs/values/slice_reader.h"

namespace shw::verbs {
namespace {

// Clips the requested window to the tensor.
Status set_clipped_window(const Checkpoint& checkpoint, TensorId tensor, const ValuesRequest& ask,
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
    return refuse(
        fmt::format("has {} dimensions, but the slice has {}", shape.size(), out.ask.dims.size()));
  std::vector<int> shown;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    DimRange& range = out.ask.dims[d];
    if (range.shown) shown.push_back(static_cast<int>(d));
    if (!range.shown) range.last = range.first < shape[d] ? range.first + 1 : range.first;
    range.last = std::min(range.last, shape[d]);
    if (shape[d] == 0) return refuse("has no elements: its shape is " + shw::to_text(shape));
    if (range.first < 0 || range.first >= range.last)
      return refuse(fmt::format("has no element {} in dimension {}, which has length {}",
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

std::optional<std::int64_t> consume_integer(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string to_text(const ValuesRequest& ask) {
  std::string text = "[";
  for (const DimRange& range : ask.dims) {
    if (text.size() > 1) text += ", ";
    text +=
        range.shown ? fmt::format("{}:{}", range.first, range.last) : std::to_string(range.first);
  }
  return text + (ask.transposed ? "] transposed" : "]");
}

std::optional<ValuesRequest> parse_values_request(std::string_view text) {
  ValuesRequest ask;
  constexpr std::string_view kTransposed = " transposed";
  if (text.ends_with(kTransposed)) {
    ask.transposed = true;
    text.remove_suffix(kTransposed.size());
  }
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    auto first = consume_integer(text);
    if (!first || ask.dims.size() == kMaxDims) return std::nullopt;
    DimRange range{*first, *first, false};
    if (text.starts_with(':')) {
      text.remove_prefix(1);
      auto last = consume_integer(text);
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

DimRange window_at(std::int64_t first, std::int64_t size, std::int64_t extent) {
  size = std::clamp<std::int64_t>(size, 1, std::max<std::int64_t>(extent, 1));
  first = std::clamp<std::int64_t>(first, 0, std::max<std::int64_t>(extent - size, 0));
  return {first, first + size, true};
}

ValuesRequest window_at(const SliceValues& slice, ExtentsView shape, ValuePlace place) {
  ValuesRequest ask = slice.ask;
  auto set = [&](int dim, std::int64_t at, std::int64_t size) {
    if (dim < 0) return;
    const auto d = static_cast<std::size_t>(dim);
    ask.dims[d] = window_at(at, size, shape[d]);
  };
  set(slice.row_dim, place.row, kMaxTableRows);
  set(slice.column_dim, place.column, kMaxTableColumns);
  return ask;
}

Result<SliceValues> slice_window(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesRequest& ask) {
  SliceValues out;
  out.tensor = tensor;
  out.dtype = checkpoint.dtype(tensor);
  if (size_of(out.dtype) == 0)
    return fail(ErrorKind::kUnsupported, "its dtype is not known: there are no values to show",
                {"", std::nullopt, std::string(checkpoint.fqn(tensor))});
  SHW_CHECK(set_clipped_window(checkpoint, tensor, ask, out));
  return out;
}

Result<SliceValues> slice_values(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesRequest& ask, Progress* progress) {
  SHW_TRY(SliceValues out, slice_window(checkpoint, tensor, ask));
  SliceReader looker(checkpoint, tensor, out, progress);
  SHW_CHECK(looker.read_statistics());
  SHW_CHECK(looker.fill_table());
  return out;
}

SideBySideValues side_by_side_values(const Checkpoint& a, TensorId tensor, const Checkpoint& b,
                                     const SliceValues& values, Progress* progress) {
  SideBySideValues beside;
  auto other = b.find(a.fqn(tensor));
  if (!other) {
    beside.note = "B has no tensor of this name";
    return beside;
  }
  if (!same(a.shape(tensor), b.shape(*other))) {
    beside.note = "in B it has the shape " + shw::to_text(b.shape(*other)) + ", in A " +
                  shw::to_text(a.shape(tensor)) + ": the slices cannot be compared";
    return beside;
  }
  auto in_b = slice_values(b, *other, values.ask, progress);
  if (!in_b) {
    beside.note = "B: " + in_b.error().message;
    beside.error = std::move(in_b).error();
    return beside;
  }
  beside.values = std::move(*in_b);
  if (a.dtype(tensor) != b.dtype(*other))
    beside.note = fmt::format("{} in A, {} in B: compared as numbers", name(a.dtype(tensor)),
                              name(b.dtype(*other)));
  SliceValues from = values, to = *beside.values;
  ValuesDifference difference;
  difference.values.tensor = tensor;
  difference.values.ask = values.ask;
  difference.values.row_dim = values.row_dim;
  difference.values.column_dim = values.column_dim;
  difference.values.rows = values.rows;
  difference.values.columns = values.columns;
  difference.values.first_row = values.first_row;
  difference.values.first_column = values.first_column;
  SliceReader looker_a(a, tensor, from, progress), looker_b(b, *other, to, progress);
  SliceReader looker(looker_a, looker_b, difference, progress);
  Status looked = looker.read_statistics();
  difference.counts = false;  // the table's elements are already counted
  if (looked) looked = looker.fill_table();
  if (looked)
    beside.difference = std::move(difference);
  else
    beside.error = std::move(looked).error();
  return beside;
}

}  // namespace shw::verbs
