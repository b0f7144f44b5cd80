// HDF5 files of the test data, opened, and what they hold.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fixtures.h"
#include "core/formats/items.h"
#include "core/formats/open.h"

namespace shw::test {

inline const std::string kDataFolder = SHW_TEST_DATA;

inline std::shared_ptr<const Checkpoint> opened(const std::string& path) {
  auto checkpoint = open_checkpoint(kDataFolder + "/" + path);
  INFO((checkpoint ? std::string() : checkpoint.error().message));
  REQUIRE(checkpoint.has_value());
  return *checkpoint;
}

inline Bytes file_bytes(const std::string& path) {
  auto source = open_file(kDataFolder + "/" + path, path);
  REQUIRE(source.has_value());
  return *read_bytes(**source, 0, (*source)->size());
}

inline OpenedCheckpoint open_bytes(Bytes bytes) {
  return open_checkpoint(memory_directory("memory", {{"m.h5", std::move(bytes)}}));
}

inline Result<TensorValues> read_named(const Checkpoint& checkpoint, std::string_view fqn) {
  auto tensor = checkpoint.find(fqn);
  REQUIRE(tensor.has_value());
  return read_tensor(checkpoint, *tensor);
}

template <class T>
std::vector<T> numbers_of(const Checkpoint& checkpoint, std::string_view fqn) {
  auto values = read_named(checkpoint, fqn);
  REQUIRE(values.has_value());
  std::vector<T> out(values->bytes.size() / sizeof(T));
  std::memcpy(out.data(), values->bytes.data(), values->bytes.size());
  return out;
}

}  // namespace shw::test
