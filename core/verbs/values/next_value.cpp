#include "core/verbs/values/next_value.h"

#include <algorithm>

#include "core/verbs/values/slice_values.h"

namespace shw::verbs {
namespace {

struct Span {
  std::int64_t first = 0, last = 0;
  std::int64_t size() const { return last - first; }
};

class ValueSearch {
 public:
  ValueSearch(const Checkpoint& checkpoint, TensorId tensor, const SliceValues& slice,
              SearchedValue sought, const Checkpoint* reference)
      : checkpoint_(checkpoint),
        tensor_(tensor),
        slice_(slice),
        searched_value_(sought),
        reference_(reference) {}

  std::int64_t extent(int dim) const {
    return dim < 0 ? 1 : checkpoint_.shape(tensor_)[static_cast<std::size_t>(dim)];
  }

  // The first place in reading order, one band after another; a band is small enough to be read
  // whole.
  Result<std::optional<ValuePlace>> find(Span rows, Span columns, Progress* progress) {
    if (rows.size() <= 0 || columns.size() <= 0) return std::nullopt;
    const std::int64_t wide = std::min(columns.size(), kMaxLooked);
    const std::int64_t high =
        wide < columns.size() ? 1 : std::max<std::int64_t>(1, kMaxLooked / wide);
    for (std::int64_t r = rows.first; r < rows.last; r += high) {
      for (std::int64_t c = columns.first; c < columns.last; c += wide) {
        if (is_cancelled(progress)) return cancelled_error();
        const Span band{r, std::min(rows.last, r + high)},
            part{c, std::min(columns.last, c + wide)};
        SHW_TRY(const std::int64_t found, count(band, part));
        if (found > 0) return narrowed(band, part);
        if (progress != nullptr)
          progress->add(static_cast<std::uint64_t>(band.size() * part.size()));
      }
    }
    return std::nullopt;
  }

  std::int64_t unread() const { return unread_; }

 private:
  ValuesRequest request_for(Span rows, Span columns) const {
    ValuesRequest ask = slice_.ask;
    auto set = [&](int dim, Span span) {
      if (dim >= 0) ask.dims[static_cast<std::size_t>(dim)] = {span.first, span.last, true};
    };
    set(slice_.row_dim, rows);
    set(slice_.column_dim, columns);
    return ask;
  }

  Result<std::int64_t> count(Span rows, Span columns) {
    const ValuesRequest ask = request_for(rows, columns);
    if (searched_value_ == SearchedValue::kNan) {
      SHW_TRY(const SliceValues values, slice_values(checkpoint_, tensor_, ask));
      unread_ += values.unread;
      return static_cast<std::int64_t>(values.statistics.nan);
    }
    if (reference_ == nullptr) return fail(ErrorKind::kUsage, "no checkpoint is compared");
    SHW_TRY(const SliceValues window, slice_window(checkpoint_, tensor_, ask));
    SideBySideValues both = side_by_side_values(checkpoint_, tensor_, *reference_, window);
    if (!both.difference)
      return both.error ? tl::unexpected(*std::move(both.error))
                        : fail(ErrorKind::kUsage, both.note);
    unread_ += both.difference->values.unread;
    return both.difference->differing;
  }

  // The first match in a window, by bisection: over the rows, then within one row.
  Result<std::optional<ValuePlace>> narrowed(Span rows, Span columns) {
    for (Span* span : {&rows, &columns}) {
      while (span->size() > 1) {
        const Span whole = *span;
        span->last = span->first + span->size() / 2;
        SHW_TRY(const std::int64_t found, count(rows, columns));
        if (found == 0) *span = {span->last, whole.last};
      }
    }
    return ValuePlace{rows.first, columns.first};
  }

  const Checkpoint& checkpoint_;
  TensorId tensor_;
  const SliceValues& slice_;
  SearchedValue searched_value_;
  const Checkpoint* reference_;
  std::int64_t unread_ = 0;
};

}  // namespace

Result<NextValue> next_value(const Checkpoint& checkpoint, TensorId tensor,
                             const SliceValues& slice, ValuePlace start, SearchedValue sought,
                             const Checkpoint* reference, Progress* progress) {
  ValueSearch search(checkpoint, tensor, slice, sought, reference);
  const std::int64_t rows = search.extent(slice.row_dim), columns = search.extent(slice.column_dim);
  const Span row{start.row, start.row + 1}, before{0, start.column}, after{start.column, columns};
  if (progress != nullptr)
    progress->begin(Phase::kReadingBytes, static_cast<std::uint64_t>(rows * columns), false);
  NextValue next;
  for (const auto& [down, across] :
       {std::pair{row, after}, std::pair{Span{start.row + 1, rows}, Span{0, columns}},
        std::pair{Span{0, start.row}, Span{0, columns}}, std::pair{row, before}}) {
    SHW_TRY(next.place, search.find(down, across, progress));
    if (next.place) break;
  }
  next.unread = search.unread();
  return next;
}

}  // namespace shw::verbs
