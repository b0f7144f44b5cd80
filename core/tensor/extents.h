// A vector of int64 with inline storage for four dims, which few tensors exceed. Millions are
// stored: 40 bytes without allocation, where std::vector needs 24 bytes and an allocation of 32 for
// two dims. The interface is that of std::vector.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>

namespace shw {

class Extents {
 public:
  using value_type = std::int64_t;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = value_type&;
  using const_reference = const value_type&;
  using iterator = value_type*;
  using const_iterator = const value_type*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  Extents() noexcept {}
  explicit Extents(size_type count, value_type value = 0) { resize(count, value); }
  Extents(std::initializer_list<value_type> values) : Extents(values.begin(), values.end()) {}
  explicit Extents(std::span<const value_type> values) : Extents(values.begin(), values.end()) {}
  template <std::forward_iterator Iterator>
  Extents(Iterator first, Iterator last) {
    assign(first, last);
  }
  Extents(const Extents& other) {
    if (other.is_here()) {
      copy_inline_slots(other);
    } else {
      assign(other.begin(), other.end());
    }
  }
  Extents(Extents&& other) noexcept { take(other); }
  ~Extents() { release(); }
  Extents& operator=(const Extents& other) {
    if (is_here() && other.is_here()) {
      copy_inline_slots(other);
    } else if (this != &other) {
      assign(other.begin(), other.end());
    }
    return *this;
  }
  Extents& operator=(Extents&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }

  size_type size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  value_type* data() noexcept { return is_here() ? here_ : there_; }
  const value_type* data() const noexcept { return is_here() ? here_ : there_; }
  iterator begin() noexcept { return data(); }
  iterator end() noexcept { return data() + size_; }
  const_iterator begin() const noexcept { return data(); }
  const_iterator end() const noexcept { return data() + size_; }
  reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
  reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }
  value_type& operator[](size_type d) { return data()[d]; }
  const value_type& operator[](size_type d) const { return data()[d]; }
  value_type& front() { return *data(); }
  const value_type& front() const { return *data(); }
  value_type& back() { return data()[size_ - 1]; }
  const value_type& back() const { return data()[size_ - 1]; }

  void clear() noexcept { size_ = 0; }
  void reserve(size_type count) {
    if (count > capacity_) grow(count);
  }
  void resize(size_type count, value_type value = 0) {
    reserve(count);
    if (is_here()) {
      for (size_type d = 0; d < kHere; ++d) {
        if (d >= size_ && d < count) here_[d] = value;
      }
    } else if (count > size_) {
      std::fill(there_ + size_, there_ + count, value);
    }
    size_ = static_cast<std::uint32_t>(count);
  }
  void push_back(value_type value) {
    if (size_ == capacity_) grow(size_type{2} * capacity_);
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void assign(size_type count, value_type value) {
    clear();
    resize(count, value);
  }
  // [first, last) must not point into this object.
  template <std::forward_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    const auto count = static_cast<size_type>(std::distance(first, last));
    clear();
    reserve(count);
    if (is_here()) {
      for (size_type d = 0; d < kHere; ++d) {
        if (d < count) here_[d] = static_cast<value_type>(*first++);
      }
    } else {
      std::copy(first, last, there_);
    }
    size_ = static_cast<std::uint32_t>(count);
  }
  iterator insert(const_iterator before, value_type value) {
    const difference_type at = before - begin();
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
    return begin() + at;
  }
  template <std::forward_iterator Iterator>
  iterator insert(const_iterator before, Iterator first, Iterator last) {
    const difference_type at = before - begin();
    const auto old = static_cast<difference_type>(size_);
    resize(size_ + static_cast<size_type>(std::distance(first, last)));
    std::copy(first, last, begin() + old);
    std::rotate(begin() + at, begin() + old, end());
    return begin() + at;
  }
  iterator erase(const_iterator which) { return erase(which, which + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    const difference_type at = first - begin();
    std::copy(last, const_iterator(end()), begin() + at);
    size_ -= static_cast<std::uint32_t>(last - first);
    return begin() + at;
  }

  friend bool operator==(const Extents& a, const Extents& b) {
    if (a.size_ != b.size_) return false;
    const value_type *left = a.data(), *right = b.data();
    for (size_type d = 0; d < a.size_; ++d) {
      if (left[d] != right[d]) return false;
    }
    return true;
  }
  friend std::strong_ordering operator<=>(const Extents& a, const Extents& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static constexpr std::uint32_t kHere = 4;

  bool is_here() const noexcept { return capacity_ == kHere; }
  void grow(size_type count) {
    auto* larger = new value_type[count];
    std::copy(begin(), end(), larger);
    release();
    there_ = larger;
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void release() noexcept {
    if (!is_here()) delete[] there_;
  }
  // Copies all four slots: two 16-byte moves are cheaper than a call with a count.
  void copy_inline_slots(const Extents& other) noexcept {
    size_ = other.size_;
    std::memcpy(here_, other.here_, sizeof here_);
  }
  // Moves the contents of `other` into this empty object; `other` is empty afterwards.
  void take(Extents& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kHere);
    std::memcpy(here_, other.here_, sizeof here_);  // or the pointer in the same place
  }

  std::uint32_t size_ = 0, capacity_ = kHere;
  union {
    value_type here_[kHere] = {};
    value_type* there_;
  };
};

}  // namespace shw
