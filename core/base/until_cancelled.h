// A loop that may take long and ends early where its job was cancelled:
//   for (TensorId tensor : until_cancelled(checkpoint.tensors(), progress))
// What it has found by then is thrown away with the job: whoever began it asks once more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "core/base/progress.h"

namespace shw {

template <class Iterator>
class UntilCancelled {
 public:
  UntilCancelled(Iterator first, Iterator last, const Progress* progress)
      : first_{first, progress}, last_(last) {}
  // Asks before every item, the first one too: two loads beside the work on one tensor.
  struct Step {
    Iterator at;
    const Progress* progress;
    decltype(auto) operator*() const { return *at; }
    Step& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator& last) const { return at == last || is_cancelled(progress); }
  };
  Step begin() const { return first_; }
  Iterator end() const { return last_; }

 private:
  Step first_;
  Iterator last_;
};

// What it runs over stays where it is, so it is no result that nobody keeps; rows of a column
// (core/base/ids.h) lie nowhere.
template <class Range>
concept OutlivesLoop = std::is_lvalue_reference_v<Range> || std::remove_cvref_t<Range>::kIsView;

template <OutlivesLoop Range>
auto until_cancelled(Range&& range, const Progress* progress) {
  return UntilCancelled(std::begin(range), std::end(range), progress);
}

// std::stable_sort, in an order that was not reached yet where it was cancelled. A quarter of a
// million names take a fifth of a second.
template <class Iterator, class Less>
void stable_sort_until_cancelled(Iterator first, Iterator last, Less less,
                                 const Progress* progress) {
  constexpr std::ptrdiff_t kBlock = 1 << 14;
  const std::ptrdiff_t count = last - first;
  for (std::ptrdiff_t at = 0; at < count && !is_cancelled(progress); at += kBlock)
    std::stable_sort(first + at, first + std::min(at + kBlock, count), less);
  for (std::ptrdiff_t width = kBlock; width < count; width *= 2) {
    for (std::ptrdiff_t at = 0; at + width < count; at += 2 * width) {
      if (is_cancelled(progress)) return;
      std::inplace_merge(first + at, first + at + width, first + std::min(at + 2 * width, count),
                         less);
    }
  }
}

}  // namespace shw
