// An optional value on the heap, for types with millions of objects of which few hold a value.
// Takes the room of one pointer; copying copies the value, as std::optional does.
#pragma once

#include <memory>
#include <utility>

namespace shw {

template <class T>
class BoxedOptional {
 public:
  BoxedOptional() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, as in std::optional
  BoxedOptional(T value) : value_(std::make_unique<T>(std::move(value))) {}
  BoxedOptional(const BoxedOptional& other)
      : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  BoxedOptional(BoxedOptional&&) noexcept = default;
  ~BoxedOptional() = default;
  BoxedOptional& operator=(const BoxedOptional& other) {
    if (this != &other) value_ = other ? std::make_unique<T>(*other) : nullptr;
    return *this;
  }
  BoxedOptional& operator=(BoxedOptional&&) noexcept = default;

  bool has_value() const noexcept { return value_ != nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace shw
