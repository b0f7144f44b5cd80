// Handles of the library that are given back, and its own words where something fails. In the .cpp
// files of this room only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace shw {

// hid_t, so that no header names the library.
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  explicit Hdf5Handle(std::int64_t id) : id_(id) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle();
  std::int64_t get() const { return id_; }
  std::int64_t release() { return std::exchange(id_, -1); }
  explicit operator bool() const { return id_ >= 0; }
  // False where what was still to be written could not be. A destructor cannot say it.
  bool close();

 private:
  std::int64_t id_ = -1;
};

// "cannot write the elements: Write failed: No space left on device", with the innermost words of
// the library, which are then forgotten. Without words where it has none.
Error hdf5_error(const std::string& what, const std::string& file, const std::string& object = {});

// The library prints nothing of its own from here on, and does nothing after main(). Before any
// other call.
void silence_hdf5();

}  // namespace shw
