// An input iterator over text that ends early when the job is cancelled, for third-party parsers:
// 200 MB of JSON take seconds. The caller checks afterwards whether all text was read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/base/progress.h"

namespace shw {

class CancellableText {
 public:
  CancellableText(std::string_view text, const Progress* progress)
      : text_(text), progress_(progress) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Iterator(const char* at, const Progress* progress) : at_(at), progress_(progress) {}
    reference operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    // Checks for cancellation once per 64 KiB.
    bool operator==(const Iterator& end) const {
      constexpr std::uintptr_t kEvery = 1 << 16;
      if (at_ == end.at_) return true;
      return reinterpret_cast<std::uintptr_t>(at_) % kEvery == 0 && is_cancelled(progress_);
    }

   private:
    const char* at_;
    const Progress* progress_;
  };
  Iterator begin() const { return {text_.data(), progress_}; }
  Iterator end() const { return {text_.data() + text_.size(), nullptr}; }

 private:
  std::string_view text_;
  const Progress* progress_;
};

}  // namespace shw
