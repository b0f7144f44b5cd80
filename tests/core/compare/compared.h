// Two checkpoints in memory, compared.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/compare.h"
#include "core/compare/laid.h"

namespace shw::test {

inline constexpr CompareOptions kData{.data = true};

inline CheckpointDifference compared(const std::vector<TiledTensor>& a,
                                     const std::vector<TiledTensor>& b,
                                     const CompareOptions& options = kData) {
  auto told = compare_checkpoints(*laid(a, "a"), *laid(b, "b"), options, nullptr);
  REQUIRE(told.has_value());
  return std::move(*told);
}

inline Bytes bytes_of(const std::vector<float>& numbers) {
  Bytes bytes(numbers.size() * 4);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

inline TiledTensor floats_named(const std::string& fqn, const std::vector<float>& numbers) {
  return {fqn, Dtype::kFloat32, {static_cast<std::int64_t>(numbers.size())}, bytes_of(numbers)};
}

inline const TensorDifference& only_one(const CheckpointDifference& told) {
  REQUIRE(told.tensors.size() == 1);
  return told.tensors.front();
}

}  // namespace shw::test
