// Owning handles of the HDF5 library, and its error messages. Only for .cpp files of
// core/hdf5.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace shw {

// A hid_t, declared here so that headers do not include the library.
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
  // False if pending data could not be written, which a destructor cannot report.
  bool close();

 private:
  std::int64_t id_ = -1;
};

// "cannot write the elements: Write failed: No space left on device", with the library's innermost
// message, whose error stack is then cleared.
Error hdf5_error(const std::string& what, const std::string& file, const std::string& object = {});

// Stops the library from printing errors and from acting after main(). Call it
// first.
void disable_hdf5_messages();

}  // namespace shw
