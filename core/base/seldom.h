// A value that hardly any object of a kind has, for kinds of which there are millions: a pointer's
// room, and copied with the object as std::optional is.
#pragma once

#include <memory>
#include <utility>

namespace shw {

template <class T>
class Seldom {
 public:
  Seldom() noexcept = default;
  // NOLINTNEXTLINE(google-explicit-constructor): as std::optional
  Seldom(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Seldom(const Seldom& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  Seldom(Seldom&&) noexcept = default;
  ~Seldom() = default;
  Seldom& operator=(const Seldom& other) {
    if (this != &other) value_ = other ? std::make_unique<T>(*other) : nullptr;
    return *this;
  }
  Seldom& operator=(Seldom&&) noexcept = default;

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
