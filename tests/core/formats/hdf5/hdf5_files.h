// HDF5 files of the test data, opened, with their expected contents.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
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

// A zlib stream that stores these bytes uncompressed.
inline Bytes stored_stream(const Bytes& bytes) {
  constexpr std::size_t kBlock = 65535;
  std::uint32_t low = 1, high = 0;
  for (std::byte byte : bytes) {
    low = (low + std::to_integer<std::uint32_t>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  Bytes out;
  auto put = [&](std::size_t byte) { out.push_back(static_cast<std::byte>(byte & 0xFF)); };
  put(0x78);
  put(0x01);
  std::size_t at = 0;
  do {
    const std::size_t size = std::min(kBlock, bytes.size() - at);
    for (std::size_t byte :
         {std::size_t{at + size == bytes.size()}, size, size >> 8, ~size, ~size >> 8})
      put(byte);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    at += size;
  } while (at < bytes.size());
  const std::uint32_t sum = high << 16 | low;
  for (int shift : {24, 16, 8, 0}) put(sum >> shift);
  return out;
}

}  // namespace shw::test
